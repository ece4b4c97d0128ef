import { expect, test } from "vitest";
import { EventLoopBrake } from "./event-loop-brake.ts";

const after = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** How often the event loop turns until `end` has settled, where somebody turns it as fast as it goes. */
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

test("the event loop turns seldom while something is awaited, however it ends, and freely afterwards", async () => {
  const brake = new EventLoopBrake();
  const refused = after(200).then(() => {
    throw new Error("lost");
  });
  brake.hold(refused);
  brake.hold(after(20));
  // A sleep of a 32nd of what was waited, each turn: some 300 turns before the first sleep, a hundred to the longest,
  // then one each millisecond.
  expect(await turnsUntil(refused)).toBeLessThan(5000);
  expect(await turnsUntil(after(200))).toBeGreaterThan(5000);
  brake.hold(after(200));
  expect(await turnsUntil(after(200))).toBeLessThan(5000);
});
