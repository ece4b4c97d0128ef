import type { CompressionJob } from "@skein/job/node";
import { buildCompression } from "@skein/step/node";
import { expect, test } from "vitest";
import { bucketOf } from "@skein/compressors";
import { densitiesOf } from "./plan-together.ts";

const lags = {
  kind: "lags",
  minDensity: 0.001,
  maxDensity: 0.1,
  errorFeedback: true,
  warmupSteps: 0,
  denseBelow: 0,
  denseVectors: false,
  momentum: 0,
} as const satisfies CompressionJob;

/**
 * Link on which one second hides an all-reduce of 1000 bytes. In this test, an all-gather has the same cost per byte.
 */
const link = { startupSeconds: 0, secondsPerByte: 1e-3 };
const profile = {
  tensors: [
    { path: "small", bytes: 400, backwardSeconds: 1 },
    { path: "large", bytes: 40_000, backwardSeconds: 1 },
    { path: "middle", bytes: 4_000, backwardSeconds: 1 },
    { path: "first", bytes: 400_000, backwardSeconds: 1 },
  ],
};

test("with lags, what may be sent dense is neither capped nor sent as the largest of all its entries", () => {
  const densities = densitiesOf(lags, profile, { worldSize: 2, allReduce: link, allGather: link });
  // The 400 bytes of "small" fit into a second. For "large", a second suffices for 62 of 10,000 entries from each of
  // two ranks.
  expect(densities["small"]).toBe(1);
  expect(densities["large"]).toBeCloseTo(0.0063, 3);
  expect(
    densitiesOf({ ...lags, maxDensity: 0.002 }, profile, { worldSize: 2, allReduce: link, allGather: link }),
  ).toMatchObject({
    small: 1,
    large: 0.002,
    first: 0.001,
  });

  const aggregator = buildCompression(lags, { buckets: [], densities })(0);
  const sent = (path: string, elements: number): number =>
    aggregator.bytesSent(bucketOf([{ path, shape: [elements] }]), 2);
  expect(sent("small", 100)).toBe(400); // equivalent all-reduce: 2 (P − 1) / P · 4 n, not 8 n (P − 1)
  expect(sent("large", 10_000)).toBe(8 * 62);
});
