import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { summarize } from "@skein/measuring";
import { writeProblem } from "../problems/problem-files.ts";
import { problems } from "../problems/table.ts";
import { makeRow, type Row } from "../report/row.ts";

const steps = 10_000;

/**
 * Benchmarks memory growth: trains the MLP for 10,000 steps in a separate process. The row's `ours` is the median
 * memory over the last thousand steps, and `peerValue` is the median over the first thousand. Constant memory gives a
 * ratio of at least 0.98.
 */
export const benchMemory = async (folder: string): Promise<Row[]> => {
  const problem = writeProblem(problems["mlp-step"]!, folder);
  const soak = fileURLToPath(new URL("../contestants/soak.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [soak, problem, String(steps)], {
    maxBuffer: 2 ** 24,
  });
  const { resident, reserved, inUse, loss } = JSON.parse(stdout) as {
    resident: number[];
    reserved: number[];
    inUse: number[];
    loss: number;
  };
  if (!Number.isFinite(loss)) throw new Error(`the loss is ${loss} after ${steps} steps`);
  const thousandth = resident.length / 10;
  const row = (benchmark: string, bytes: readonly number[]): Row => {
    const mebibytes = bytes.map((value) => value / 2 ** 20);
    return makeRow({
      benchmark,
      unit: "MiB",
      better: "lower",
      peer: "first 1,000 steps",
      ours: summarize(mebibytes.slice(-thousandth)),
      theirs: summarize(mebibytes.slice(0, thousandth)),
      target: 0.98,
      note: `last 1,000 of ${steps} steps`,
    });
  };
  return [
    row("memory: resident", resident),
    row("memory: arena reserved", reserved),
    row("memory: arena in use", inUse),
  ];
};
