import { expect, test } from "vitest";
import type { Clock } from "../clock.ts";
import { busyPoll } from "./busy-poll.ts";

/** Returns a fake event loop, in which `next` runs the next callback of `turn`, and a clock set by the test. */
const loop = () => {
  const turns: (() => void)[] = [];
  const time = { now: 0 };
  const clock: Clock = { now: () => time.now, after: () => () => undefined };
  return {
    turn: (call: () => void): void => void turns.push(call),
    /**
     * Runs the next callback.
     *
     * @returns whether there was a callback.
     */
    next: (): boolean => {
      const call = turns.shift();
      call?.();
      return call !== undefined;
    },
    clock,
    time,
  };
};

test("polls for the given time, and again after another call", () => {
  const { turn, next, clock, time } = loop();
  const poll = busyPoll(turn, 5, clock);
  poll();
  poll(); // Must not start a second polling loop.
  for (time.now = 1; time.now < 5; time.now++) expect(next()).toBe(true);
  expect([next(), next()]).toEqual([true, false]); // The first of these turns detects that the time is over.
  poll();
  expect(next()).toBe(true);
});
