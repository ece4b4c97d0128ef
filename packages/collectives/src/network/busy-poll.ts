import type { Clock } from "../clock.ts";

/**
 * Keeps an event loop looking for messages instead of sleeping: who waits is woken some 50 µs sooner, and a core is
 * busy meanwhile.
 *
 * @param turn let the event loop turn once, then call: `setImmediate`.
 * @returns keeps it up for `milliseconds` from now.
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
