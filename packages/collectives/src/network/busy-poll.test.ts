import { expect, test } from "vitest";
import type { Clock } from "../clock.ts";
import { busyPoll } from "./busy-poll.ts";

/** An event loop that turns when it is told to, and a clock that stands still. */
const loop = () => {
  const turns: (() => void)[] = [];
  const time = { now: 0 };
  const clock: Clock = { now: () => time.now, after: () => () => undefined };
  return {
    turn: (call: () => void): void => void turns.push(call),
    /** @returns whether it had something to do. */
    next: (): boolean => {
      const call = turns.shift();
      call?.();
      return call !== undefined;
    },
    clock,
    time,
  };
};

test("looks for its time, and begins again when it is asked to", () => {
  const { turn, next, clock, time } = loop();
  const poll = busyPoll(turn, 5, clock);
  poll();
  poll(); // does not turn twice
  for (time.now = 1; time.now < 5; time.now++) expect(next()).toBe(true);
  expect([next(), next()]).toEqual([true, false]); // the look that finds that the time is over
  poll();
  expect(next()).toBe(true);
});
