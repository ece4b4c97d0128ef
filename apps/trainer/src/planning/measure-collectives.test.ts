import { createCpuBackend } from "@skein/cpu-kernels";
import type { Communicator } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { measureCollectives } from "./measure-collectives.ts";

/**
 * Returns a communicator of two ranks that alternate in being late. In each pair of calls, the first call finds all
 * messages present, and the second call takes `millisecondsOfTwo`, the time of two calls.
 */
const outOfStep = (millisecondsOfTwo: number): Communicator => {
  let calls = 0;
  return {
    rank: 0,
    worldSize: 2,
    start: () => ({ id: calls++ }),
    wait: ({ id }) =>
      id % 2 === 0 ? undefined : new Promise((resolve) => void setTimeout(resolve, millisecondsOfTwo)),
    bytesSent: () => 0,
    members: [0, 1],
    exchangeTexts: (text) => [text, text],
    split: () => {
      throw new Error("nobody splits here");
    },
  };
};

test.each(["all-reduce", "all-gather"] as const)(
  "no sample of an %s includes the wait for a late rank",
  async (kind) => {
    const samples = await measureCollectives(kind, "data", {
      backend: await createCpuBackend(),
      communicators: { data: outOfStep(20) },
      maxBytes: 16_384,
    });
    expect([...new Set(samples.map(({ bytes }) => bytes))]).toEqual([4096, 16_384, 65_536]);
    // Each call takes 10 ms; timers may fire a millisecond early.
    for (const { seconds } of samples) expect(seconds).toBeGreaterThanOrEqual(0.009);
  },
);

test("two concurrent ones overlap, on their own lanes, with equal sizes", async () => {
  const events: string[] = [];
  const lanes: Communicator = {
    rank: 0,
    worldSize: 2,
    members: [0, 1],
    exchangeTexts: (text) => [text, text],
    start: ({ priority = 0, input }) => {
      events.push(`start ${priority}: ${input.byteLength}`);
      return { id: priority };
    },
    wait: ({ id }) => void events.push(`wait ${id}`),
    bytesSent: () => 0,
    split: () => {
      throw new Error("nobody splits here");
    },
  };
  const backend = await createCpuBackend();
  const samples = await measureCollectives("all-reduce", "data", {
    backend,
    communicators: { data: lanes },
    maxBytes: 4096,
    atOnce: 2,
  });
  expect([...new Set(samples.map(({ bytes }) => bytes))]).toEqual([4096, 16_384, 65_536]);
  for (const { seconds } of samples) expect(seconds).toBeGreaterThan(0);
  for (let call = 0; call < events.length; call += 4) {
    const [first, second, ...waits] = events.slice(call, call + 4);
    expect(first!.replace("0", "1")).toBe(second);
    expect(waits.toSorted()).toEqual(["wait 0", "wait 1"]);
  }
});
