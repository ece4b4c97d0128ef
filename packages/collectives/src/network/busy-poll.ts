import type { Clock } from "../clock.ts";

/**
 * Keeps an event loop polling for messages instead of sleeping. A waiting thread then wakes about 50 µs sooner, but
 * occupies a core.
 *
 * @param turn calls back in the next turn of the event loop, like `setImmediate`.
 * @returns a function that makes the event loop poll for `milliseconds` after each call.
 */
export const busyPoll = (turn: (call: () => void) => void, milliseconds: number, clock: Clock): (() => void) => {
  let until = 0;
  let turning = false;
  const again = (): void => {
    turning = clock.now() < until;
    if (turning) turn(again);
  };
  return () => {
    until = clock.now() + milliseconds;
    if (!turning) again();
  };
};
