import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { summarize } from "@skein/measuring";
import { makeRow, type Row } from "../report/row.ts";
import { type Measurement, sizes } from "./problem.ts";

const run = promisify(execFile);
const beside = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const rounds = 3;

const measure = async (command: string, args: readonly string[]): Promise<Measurement[]> => {
  const { stdout } = await run(command, args, { maxBuffer: 2 ** 26 });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Measurement);
};

/** Build the MPI program, or say why it cannot be. */
const buildOpenMpi = async (folder: string): Promise<{ program: string } | { missing: string }> => {
  const program = join(folder, "open-mpi-all-reduce");
  try {
    await run("mpicc", ["-O3", beside("./open-mpi.c"), "-o", program]);
    return { program };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { missing: "no mpicc here; install libopenmpi-dev and openmpi-bin" };
    throw error;
  }
};

const label = (bytes: number): string => (bytes < 2 ** 20 ? `${bytes / 2 ** 10} KiB` : `${bytes / 2 ** 20} MiB`);

/**
 * Two-rank all-reduce of f32 in place: thread ranks of ours beside Open MPI's processes over shared memory. Each contestant checks its
 * results before and after it times them; the two take turns, so that a busy moment of the machine meets both.
 *
 * @param folder where the MPI program is built.
 */
export const benchAllReduce = async (folder: string): Promise<Row[]> => {
  const built = await buildOpenMpi(folder);
  const ours: Measurement[] = [];
  const theirs: Measurement[] = [];
  for (let round = 0; round < rounds; round++) {
    ours.push(...(await measure(process.execPath, [beside("./threads.ts")])));
    if ("program" in built)
      theirs.push(...(await measure("mpirun", ["--allow-run-as-root", "-n", "2", "--mca", "btl", "self,vader", built.program])));
  }
  return sizes.map(({ bytes }) => {
    const samples = (measurements: readonly Measurement[]): number[] =>
      measurements.filter((measurement) => measurement.bytes === bytes).flatMap(({ microseconds }) => microseconds);
    const peerSamples = samples(theirs);
    return makeRow({
      benchmark: `all-reduce ${label(bytes)}, 2 ranks`,
      unit: "µs",
      better: "lower",
      peer: "Open MPI, shared memory",
      ours: summarize(samples(ours)),
      theirs: peerSamples.length === 0 ? undefined : summarize(peerSamples),
      target: bytes >= 2 ** 20 ? 2 : undefined,
      note: "missing" in built ? built.missing : undefined,
    });
  });
};
