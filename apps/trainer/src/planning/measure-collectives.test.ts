import { createCpuBackend } from "@skein/cpu-kernels";
import type { Communicator } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { measureCollectives } from "./measure-collectives.ts";

/** Two ranks that are never in step: of two calls this one finds all messages there in the first, and waits for both in the second. */
const outOfStep = (millisecondsOfTwo: number): Communicator => {
  let calls = 0;
  return {
    rank: 0,
    worldSize: 2,
    start: () => ({ id: calls++ }),
    wait: ({ id }) => (id % 2 === 0 ? undefined : new Promise((resolve) => void setTimeout(resolve, millisecondsOfTwo))),
    bytesSent: () => 0,
    members: [0, 1],
    exchangeTexts: (text) => [text, text],
    split: () => {
      throw new Error("nobody splits here");
    },
  };
};

test.each(["all-reduce", "all-gather"] as const)("no sample of an %s is what a rank waits that comes late", async (kind) => {
  const samples = await measureCollectives(kind, "data", {
    backend: await createCpuBackend(),
    communicators: { data: outOfStep(20) },
    mostBytes: 16_384,
  });
  expect([...new Set(samples.map(({ bytes }) => bytes))]).toEqual([4096, 16_384, 65_536]);
  // Ten each; timers may be a millisecond early.
  for (const { seconds } of samples) expect(seconds).toBeGreaterThanOrEqual(0.009);
});
