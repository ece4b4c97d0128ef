import type { Clock } from "./clock.ts";

// Timers of Node ring up to this much late; the rest is waited for by turning the event loop.
const timerMilliseconds = 2;

/** Real time in steps of some ten microseconds, for emulated links. Keeps a core busy for two milliseconds before each call. */
export const fineClock: Clock = {
  now: () => performance.now(),
  after: (milliseconds, call) => {
    const due = performance.now() + milliseconds;
    let over = false;
    const turn = (): void => {
      if (over) return;
      if (performance.now() >= due) call();
      else setImmediate(turn);
    };
    if (milliseconds > timerMilliseconds) setTimeout(turn, milliseconds - timerMilliseconds).unref();
    else setImmediate(turn);
    return () => {
      over = true;
    };
  },
};
