import { afterEach, beforeEach, expect, test } from "vitest";
import { type FineClock, openFineClock } from "./fine-clock.ts";

let clock: FineClock;
beforeEach(() => {
  clock = openFineClock();
});
afterEach(() => clock.close());

test("calls come in the order in which they are due, none early, also where one is asked for in another", async () => {
  const begin = clock.now();
  const calls: { readonly wanted: number; readonly at: number }[] = [];
  const waits = [7, 0.3, 3, 0, 0.3, 12, 1.5];
  await new Promise<void>((resolve) => {
    const ask = (wanted: number, then?: () => void): unknown =>
      clock.after(wanted, () => {
        calls.push({ wanted, at: clock.now() - begin });
        then?.();
      });
    for (const wanted of waits) ask(wanted, wanted === 12 ? () => ask(0.4, resolve) : undefined);
  });
  expect(calls.map(({ wanted }) => wanted)).toEqual([0, 0.3, 0.3, 1.5, 3, 7, 12, 0.4]);
  for (const { wanted, at } of calls) expect(at).toBeGreaterThanOrEqual(wanted);
});

test("a call that was taken back does not come, and nothing comes after the end", async () => {
  const calls: string[] = [];
  await new Promise<void>((resolve) => {
    const takeBack = clock.after(2, () => calls.push("taken back"));
    clock.after(1, () => {
      calls.push("first");
      takeBack();
    });
    clock.after(4, resolve);
  });
  clock.after(1, () => calls.push("after the end"));
  await clock.close();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(calls).toEqual(["first"]);
});

test("no call is lost among thousands that are asked for one after another, at every distance from the alarm's lead", async () => {
  await new Promise<void>((resolve) => {
    const next = (left: number): void => void (left === 0 ? resolve() : clock.after(0.1 + (left % 64) / 1000, () => next(left - 1)));
    next(3000);
  });
});
