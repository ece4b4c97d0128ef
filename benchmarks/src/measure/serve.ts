import { createInterface } from "node:readline";
import type { ContestantReply, ContestantRequest } from "./protocol.ts";

/** A problem ready to be timed: `checks` are losses of the first steps, or the elements of the product. */
export interface PreparedProblem {
  readonly checks: readonly number[];
  run(): void | Promise<void>;
}

export interface Contestant {
  readonly version: string;
  prepare(problem: string, folder: string): Promise<PreparedProblem>;
}

const measure = async (run: () => void | Promise<void>, seconds: number, iterations: number): Promise<number[]> => {
  const milliseconds: number[] = [];
  const end = performance.now() + seconds * 1000;
  while (milliseconds.length < iterations || performance.now() < end) {
    const start = performance.now();
    await run();
    milliseconds.push(performance.now() - start);
  }
  return milliseconds;
};

/** Answer the harness line by line until standard input closes. A failure is an answer too, with the library's own words. */
export const serve = async (contestant: Contestant): Promise<void> => {
  let prepared: PreparedProblem | undefined;
  const answer = async (request: ContestantRequest): Promise<ContestantReply> => {
    if (request.command === "prepare") {
      prepared = await contestant.prepare(request.problem, request.folder);
      return { ok: true, version: contestant.version, checks: prepared.checks };
    }
    if (prepared === undefined) return { ok: false, error: "measure came before prepare" };
    return { ok: true, milliseconds: await measure(prepared.run, request.seconds, request.iterations) };
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const reply = await answer(JSON.parse(line)).catch(
      (error: unknown): ContestantReply => ({ ok: false, error: error instanceof Error ? error.message : String(error) }),
    );
    process.stdout.write(`\n@${JSON.stringify(reply)}\n`);
  }
  process.exit(0);
};
