import { expect, test } from "vitest";
import { EventLoopBrake } from "./event-loop-brake.ts";

const after = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Counts the iterations of the event loop until `end` settles, with a loop that iterates as fast as possible. */
const turnsUntil = async (end: Promise<unknown>): Promise<number> => {
  let [turns, over] = [0, false];
  const turn = (): void => {
    turns++;
    if (!over) setImmediate(turn);
  };
  turn();
  await end.catch(() => undefined);
  over = true;
  return turns;
};

test("the event loop turns rarely during an await, however it ends, and freely afterwards", async () => {
  const brake = new EventLoopBrake();
  const refused = after(200).then(() => {
    throw new Error("lost");
  });
  brake.hold(refused);
  brake.hold(after(20));
  // Each iteration sleeps for 1/32 of the time waited so far: about 300 iterations before the first sleep, a hundred
  // until the longest sleep, then one iteration per millisecond.
  expect(await turnsUntil(refused)).toBeLessThan(5000);
  expect(await turnsUntil(after(200))).toBeGreaterThan(5000);
  brake.hold(after(200));
  expect(await turnsUntil(after(200))).toBeLessThan(5000);
});
