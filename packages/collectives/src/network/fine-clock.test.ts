import { afterEach, beforeEach, expect, test } from "vitest";
import { type FineClock, openFineClock } from "./fine-clock.ts";

let clock: FineClock;
beforeEach(() => {
  clock = openFineClock();
});
afterEach(() => clock.close());

/**
 * A call that was asked for, and between which times it is due: the clock reads the time itself, somewhere within
 * `after`.
 */
interface Asked {
  readonly wanted: number;
  readonly dueFrom: number;
  readonly dueUntil: number;
}

test("calls come in the order in which they are due, none early, also where one is asked for in another", async () => {
  const called: Asked[] = [];
  const early: Asked[] = [];
  const waits = [7, 0.3, 3, 0, 0.3, 12, 1.5];
  await new Promise<void>((resolve) => {
    const ask = (wanted: number, then?: () => void): void => {
      const from = clock.now();
      clock.after(wanted, () => {
        if (clock.now() < asked.dueFrom) early.push(asked);
        called.push(asked);
        then?.();
      });
      const asked: Asked = { wanted, dueFrom: from + wanted, dueUntil: clock.now() + wanted };
    };
    for (const wanted of waits) ask(wanted, wanted === 12 ? () => ask(0.4, resolve) : undefined);
  });
  expect(called.map(({ wanted }) => wanted).toSorted()).toEqual([...waits, 0.4].toSorted());
  expect(early).toEqual([]);
  // A machine that stops between two questions makes a short wait due after a long one, so the order is judged by what
  // was due.
  const swapped = called.flatMap((first, at) =>
    called.slice(at + 1).filter((second) => second.dueUntil < first.dueFrom),
  );
  expect(swapped).toEqual([]);
});

test("a call that was taken back does not come, and nothing comes after the end", async () => {
  const calls: string[] = [];
  await new Promise<void>((resolve) => {
    clock.after(1, () => {
      calls.push("first");
      takeBack();
    });
    // asked for second, so it is due later whatever the machine does
    const takeBack = clock.after(2, () => calls.push("taken back"));
    clock.after(4, resolve);
  });
  clock.after(1, () => calls.push("after the end"));
  await clock.close();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(calls).toEqual(["first"]);
});

test("no call is lost among thousands that are asked for one after another, at every distance from the alarm's lead", async () => {
  await new Promise<void>((resolve) => {
    const next = (left: number): void =>
      void (left === 0 ? resolve() : clock.after(0.1 + (left % 64) / 1000, () => next(left - 1)));
    next(3000);
  });
});
