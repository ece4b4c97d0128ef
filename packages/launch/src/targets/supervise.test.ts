import type { StopCause } from "@skein/cli/node";
import { expect, test } from "vitest";
import { type Attempt, supervise } from "./supervise.ts";

interface Played {
  readonly code: number;
  readonly starts: number;
  readonly notes: readonly string[];
}

/** Simulates attempts that end with the given exit codes. */
const play = async (
  codes: readonly number[],
  maxRestarts: number,
  {
    pauseMilliseconds = 0,
    steps = [],
  }: { readonly pauseMilliseconds?: number; readonly steps?: readonly number[] } = {},
): Promise<Played> => {
  const notes: string[] = [];
  let starts = 0;
  const code = await supervise({
    start: (number) => {
      expect(number).toBe(starts++);
      return { ended: Promise.resolve(codes[number]!), stop: () => {} };
    },
    maxRestarts,
    reached: () => steps[starts - 1] ?? 0,
    interrupted: new Promise(() => {}),
    note: (line) => void notes.push(line),
    pauseMilliseconds,
  });
  return { code, starts, notes };
};

test("failed attempts are started again until one succeeds", async () => {
  expect(await play([1, 137, 0], 3)).toMatchObject({ code: 0, starts: 3 });
});

test("restarts are limited, and the last code is returned", async () => {
  const { code, starts, notes } = await play([1, 1, 134], 2);
  expect({ code, starts }).toEqual({ code: 134, starts: 3 });
  expect(notes).toEqual([
    "the ranks ended with code 1; restarting from the newest checkpoint (restart 1 of 2)",
    "the ranks ended with code 1; restarting from the newest checkpoint (restart 2 of 2)",
    "the ranks ended with code 134, and all restarts (2) are used up",
  ]);
  expect(await play([1], 0)).toMatchObject({ code: 1, starts: 1 });
});

test("retriable failures are tried again, after a delay", async () => {
  const { code, starts, notes } = await play([75, 1, 0], 3, { pauseMilliseconds: 1 });
  expect({ code, starts }).toEqual({ code: 0, starts: 3 });
  expect(notes).toEqual([
    "the ranks ended with code 75; restarting from the newest checkpoint in 0.03 s, because the failure may be temporary (restart 1 of 3)",
    "the ranks ended with code 1; restarting from the newest checkpoint (restart 2 of 3)",
  ]);
});

test("progress resets the number of restarts", async () => {
  expect(await play([1, 1, 1, 1, 0], 1, { steps: [100, 200, 300, 400] })).toMatchObject({ code: 0, starts: 5 });
  expect(await play([1, 1, 1, 1, 0], 1, { steps: [100, 100, 300, 400] })).toMatchObject({ code: 1, starts: 2 });
});

test("usage errors are not retried", async () => {
  expect(await play([2], 3)).toEqual({ code: 2, starts: 1, notes: [] });
});

/** Returns an attempt that ends with `code` after a stop request. `asked` returns the number of requests. */
const patient = (code: number): Attempt & { readonly asked: () => number } => {
  let asked = 0;
  let end: (code: number) => void;
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });
  return {
    ended,
    stop: () => {
      asked++;
      end(code);
    },
    asked: () => asked,
  };
};

test.each<[StopCause, number, number]>([
  ["SIGINT", 143, 130],
  ["SIGHUP", 143, 129],
  ["SIGQUIT", 140, 131],
  ["SIGTERM", 143, 143],
  ["SIGTERM", 9, 9],
  ["SIGINT", 0, 0],
])("on %s the ranks are asked once to stop; they end with %i, the command with %i", async (cause, ends, code) => {
  const attempt = patient(ends);
  let starts = 0;
  const result = await supervise({
    start: () => {
      starts++;
      return attempt;
    },
    maxRestarts: 3,
    reached: () => 0,
    interrupted: Promise.resolve(cause),
    note: () => {},
    pauseMilliseconds: 0,
  });
  expect({ result, starts, asked: attempt.asked() }).toEqual({ result: code, starts: 1, asked: 1 });
});

test("a stop during the pause before a restart prevents further starts", async () => {
  let starts = 0;
  let interrupt: (cause: StopCause) => void;
  const interrupted = new Promise<StopCause>((resolve) => {
    interrupt = resolve;
  });
  const code = await supervise({
    start: () => {
      starts++;
      return { ended: Promise.resolve(1), stop: () => {} };
    },
    maxRestarts: 3,
    reached: () => 0,
    interrupted,
    note: () => interrupt("SIGINT"),
    pauseMilliseconds: 3_600_000,
  });
  expect({ code, starts }).toEqual({ code: 130, starts: 1 });
});
