import { expect } from "vitest";
import { checkpointBytes, type Ended, stepLosses } from "./cli.ts";

/**
 * Expects that two runs in different output folders ended equally: equal checkpoints after `step`, and equal losses of
 * all steps up to `step`.
 */
export const expectSameEnd = (output: string, reference: string, step: number): void => {
  expect(checkpointBytes(output, step)).toEqual(checkpointBytes(reference, step));
  expect(stepLosses(output)).toEqual(stepLosses(reference));
};

/** Expects the loss of each step of the run in `output` to be close to the loss of the same step in `reference`. */
export const expectCloseLosses = (output: string, reference: string, tolerance: number): void => {
  const [losses, expected] = [stepLosses(output), stepLosses(reference)];
  expect(losses).toHaveLength(expected.length);
  for (const [i, loss] of losses.entries())
    expect(Math.abs(loss - expected[i]!), `step ${i + 1}`).toBeLessThan(tolerance);
};

/** Expects processes to have succeeded. Shows the output of a process that has not succeeded. */
export const expectDone = (processes: readonly Ended[]): void =>
  expect(processes.map(({ code, stderr }) => [code, code === 0 ? "" : stderr])).toEqual(processes.map(() => [0, ""]));

/** Expects a process to have ended with `code` and a plain error message, without a stack trace. */
export const expectTold = (ended: Ended, why: RegExp | string, code: number): void => {
  if (typeof why === "string") expect(ended.stderr).toContain(why);
  else expect(ended.stderr).toMatch(why);
  expect(ended.stderr).not.toMatch(/^\s+at /m);
  expect(ended.code).toBe(code);
};

/** Returns the error message of a run, as one line. */
export const messageOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => "nothing was thrown",
    (error: Error) => error.message,
  );
