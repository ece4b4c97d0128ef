import { expect } from "vitest";
import { checkpointBytes, type Ended, stepLosses } from "./cli.ts";

/**
 * Expect the run in one output folder to have ended like that in another: the same bits after `step`, and the same
 * losses before.
 */
export const expectSameEnd = (output: string, reference: string, step: number): void => {
  expect(checkpointBytes(output, step)).toEqual(checkpointBytes(reference, step));
  expect(stepLosses(output)).toEqual(stepLosses(reference));
};

/** Expect the run in one output folder to have about the losses of that in another, step by step. */
export const expectCloseLosses = (output: string, reference: string, tolerance: number): void => {
  const [losses, expected] = [stepLosses(output), stepLosses(reference)];
  expect(losses).toHaveLength(expected.length);
  for (const [i, loss] of losses.entries())
    expect(Math.abs(loss - expected[i]!), `step ${i + 1}`).toBeLessThan(tolerance);
};

/** Expect processes to have succeeded; shows the output of one that has not. */
export const expectDone = (processes: readonly Ended[]): void =>
  expect(processes.map(({ code, stderr }) => [code, code === 0 ? "" : stderr])).toEqual(processes.map(() => [0, ""]));

/** Expect a process to have ended with `code` and a plain error message, without a stack trace. */
export const expectTold = (ended: Ended, why: RegExp | string, code: number): void => {
  if (typeof why === "string") expect(ended.stderr).toContain(why);
  else expect(ended.stderr).toMatch(why);
  expect(ended.stderr).not.toMatch(/^\s+at /m);
  expect(ended.code).toBe(code);
};

/** Error message of a run, in one line. */
export const messageOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => "nothing was thrown",
    (error: Error) => error.message,
  );
