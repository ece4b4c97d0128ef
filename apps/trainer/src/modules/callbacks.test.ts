import { setTimeout } from "node:timers/promises";
import { maxWaiting, type RunEvent } from "@skein/run-files/node";
import { expect, onTestFinished, test, vi } from "vitest";
import { Interruption } from "../processes/interruption.ts";
import { CallbackQueue } from "./callbacks.ts";
import type { Callbacks } from "./factories.ts";

const queueOf = (callbacks: Callbacks, interruption = new Interruption()): Promise<CallbackQueue> =>
  CallbackQueue.load({ kind: "program", digest: "0".repeat(64) }, interruption, callbacks);
const quiet = (): void => undefined;
const step = (at: number): RunEvent => ({ type: "step", step: at, steps: 1e6, epoch: 0, loss: 1 });
const checkpoint = (at: number): RunEvent => ({ type: "checkpoint", step: at, folder: `at-${at}` });

test("a callback slower than steps misses the oldest ones, never a checkpoint or the end, and this is reported", async () => {
  const heard: string[] = [];
  const opened = Promise.withResolvers<void>();
  const queue = await queueOf({
    onStep: async (event) => {
      await opened.promise;
      heard.push(`step ${event.step}`);
    },
    onCheckpoint: (event) => void heard.push(`checkpoint ${event.step}`),
    onEnd: (event) => void heard.push(`end ${event.step}`),
  });
  const last = 10 * maxWaiting;
  queue.take(step(0));
  await setTimeout(); // the callback is called with step 0
  for (let at = 1; at <= last; at++) {
    queue.take(step(at));
    if (at % maxWaiting === 0) queue.take(checkpoint(at));
  }
  queue.take({ type: "end", how: "finished", step: last });
  opened.resolve();
  const waitMessage = await queue.done(undefined, quiet);

  const [steps, others] = [true, false].map((isStep) => heard.filter((each) => each.startsWith("step") === isStep));
  const newest = Array.from({ length: maxWaiting }, (_, i) => `step ${last - maxWaiting + 1 + i}`);
  expect(steps).toEqual(["step 0", ...newest]);
  expect(others).toEqual([
    ...Array.from({ length: 10 }, (_, i) => `checkpoint ${maxWaiting * (i + 1)}`),
    `end ${last}`,
  ]);
  expect(heard.at(-2)).toBe(`checkpoint ${last}`);
  expect(waitMessage).toMatch(
    /^train\(\): callbacks: onStep was not called for 9000 steps, because it is slower than steps and at most 1000 /,
  );
});

test("an event after all calls are done is delivered, too, and nothing is reported where nothing was skipped", async () => {
  const heard: number[] = [];
  const queue = await queueOf({ onStep: ({ step: at }) => void heard.push(at) });
  for (let at = 0; at < 4; at++) {
    queue.take(step(at));
    // Waits between events for durations from one microtask to a turn of the event loop, so that events arrive at every
    // point of the previous call.
    for (let turns = 0; turns < at; turns++) await Promise.resolve();
    if (at === 3) await setTimeout();
  }
  queue.take(step(4));
  expect(await queue.done(undefined, quiet)).toBeUndefined();
  expect(heard).toEqual([0, 1, 2, 3, 4]);
});

test("nothing is called after a callback has thrown, not even the end", async () => {
  let calls = 0;
  const interruption = new Interruption();
  const queue = await queueOf(
    {
      onStep: () => {
        calls++;
        throw new Error("no");
      },
      onEnd: () => void calls++,
    },
    interruption,
  );
  for (let at = 0; at < 3; at++) queue.take(step(at));
  queue.take({ type: "end", how: "stopped", step: 3 });
  await expect(queue.done("at-3", quiet)).rejects.toThrow(/at-3 was saved: .*onStep: Error: no/);
  expect(calls).toBe(1);
  expect(interruption.requested).toBe(true);
});

test("a call that never returns is named once its time after the end of the run is over, and nothing else is called", async () => {
  const heard: string[] = [];
  const queue = await queueOf({
    patienceSeconds: 0.05,
    onStep: () => new Promise<void>(() => undefined),
    onEnd: () => void heard.push("end"),
  });
  queue.take(step(1));
  await setTimeout(100); // the call does not block the run
  queue.take({ type: "end", how: "finished", step: 1 });
  await expect(queue.done("at-1", quiet)).rejects.toThrow(
    /the run has ended, at-1 was saved, but train\(\): callbacks: onStep has not returned for 0.05 s since/,
  );
  queue.take({ type: "end", how: "finished", step: 1 });
  expect(heard).toEqual([]);
});

test("slow calls that return are awaited, each with its own time limit", async () => {
  const toFake = ["setTimeout", "setInterval", "clearInterval", "performance"] as const;
  vi.useFakeTimers({ toFake: [...toFake] });
  onTestFinished(() => void vi.useRealTimers());
  const heard: number[] = [];
  const notes: string[] = [];
  const queue = await queueOf({
    patienceSeconds: 20,
    onCheckpoint: async ({ step: at }) => {
      await new Promise((resolve) => globalThis.setTimeout(resolve, 15_000));
      heard.push(at);
    },
  });
  for (let at = 1; at <= 5; at++) queue.take(checkpoint(at));
  const done = queue.done("at-5", (line) => notes.push(line));
  await vi.advanceTimersByTimeAsync(80_000);
  expect(await done).toBeUndefined();
  expect(heard).toEqual([1, 2, 3, 4, 5]);
  expect(notes).toHaveLength(5); // a long wait is reported once per callback
  expect(notes[0]).toMatch(
    /the run has ended, and waits for at most 20 s for .*onCheckpoint, which has not returned yet/,
  );
});

test.each([[0], [-1], [Number.NaN], ["10"]])("patienceSeconds: %s is refused", async (patienceSeconds) => {
  await expect(queueOf({ patienceSeconds } as Callbacks)).rejects.toThrow(/patienceSeconds .*above 0/);
});
