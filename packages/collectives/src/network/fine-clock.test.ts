import { afterEach, beforeEach, expect, test } from "vitest";
import { type FineClock, openFineClock } from "./fine-clock.ts";

let clock: FineClock;
beforeEach(() => {
  clock = openFineClock();
});
afterEach(() => clock.close());

/** A scheduled call with bounds of its due time. Bounds are needed because `after` reads the time itself. */
interface Scheduled {
  readonly wanted: number;
  readonly dueFrom: number;
  readonly dueUntil: number;
}

test("calls run in the order of their due times, not early, also if one is scheduled in another", async () => {
  const called: Scheduled[] = [];
  const early: Scheduled[] = [];
  const waits = [7, 0.3, 3, 0, 0.3, 12, 1.5];
  await new Promise<void>((resolve) => {
    const ask = (wanted: number, then?: () => void): void => {
      const from = clock.now();
      clock.after(wanted, () => {
        if (clock.now() < scheduled.dueFrom) early.push(scheduled);
        called.push(scheduled);
        then?.();
      });
      const scheduled: Scheduled = { wanted, dueFrom: from + wanted, dueUntil: clock.now() + wanted };
    };
    for (const wanted of waits) ask(wanted, wanted === 12 ? () => ask(0.4, resolve) : undefined);
  });
  expect(called.map(({ wanted }) => wanted).toSorted()).toEqual([...waits, 0.4].toSorted());
  expect(early).toEqual([]);
  // If the machine is paused between two calls of `after`, a short wait may be due after a long wait, so the order is
  // checked by due times.
  const swapped = called.flatMap((first, at) =>
    called.slice(at + 1).filter((second) => second.dueUntil < first.dueFrom),
  );
  expect(swapped).toEqual([]);
});

test("a canceled call does not run, and no call runs after close", async () => {
  const calls: string[] = [];
  await new Promise<void>((resolve) => {
    clock.after(1, () => {
      calls.push("first");
      cancel();
    });
    // Scheduled later, so this call is due after the other call.
    const cancel = clock.after(2, () => calls.push("canceled"));
    clock.after(4, resolve);
  });
  clock.after(1, () => calls.push("after the end"));
  await clock.close();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(calls).toEqual(["first"]);
});

test("loses none of thousands of consecutive calls, at every distance from the alarm's lead time", async () => {
  await new Promise<void>((resolve) => {
    const next = (left: number): void =>
      void (left === 0 ? resolve() : clock.after(0.1 + (left % 64) / 1000, () => next(left - 1)));
    next(3000);
  });
});
