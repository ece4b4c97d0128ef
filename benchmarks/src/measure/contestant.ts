import type { LoadedProblem } from "../problems/values.ts";
import type { ContestantReply, ContestantRequest } from "./protocol.ts";

/** A problem that is ready for timing. `checks` are the losses of the first steps, or elements of a matrix product. */
export interface PreparedProblem {
  readonly checks: readonly number[];
  run(): void | Promise<void>;
}

export interface Contestant {
  readonly version: string;
  prepare(problem: LoadedProblem): Promise<PreparedProblem>;
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

/**
 * Returns a function that answers requests to an implementation. A failure becomes a reply with the library's error
 * message.
 *
 * @param load Finds the problem that a request names.
 */
export const answering = (
  contestant: Contestant,
  load: (name: string, folder: string) => LoadedProblem,
): ((request: ContestantRequest) => Promise<ContestantReply>) => {
  let prepared: PreparedProblem | undefined;
  const answer = async (request: ContestantRequest): Promise<ContestantReply> => {
    if (request.command === "prepare") {
      prepared = await contestant.prepare(load(request.problem, request.folder));
      return { ok: true, version: contestant.version, checks: prepared.checks };
    }
    if (prepared === undefined) return { ok: false, error: "measure came before prepare" };
    return { ok: true, milliseconds: await measure(prepared.run, request.seconds, request.iterations) };
  };
  return (request) =>
    answer(request).catch(
      (error: unknown): ContestantReply => ({
        ok: false,
        error: error instanceof Error ? error.message : String(error),
      }),
    );
};
