import { lengthOf, withErrorFeedback } from "../../src/index.ts";
import { dgcAggregator } from "../../src/dgc.ts";
import { gaussianKCompressor } from "../../src/gaussian-k.ts";
import { withMomentumCorrection } from "../../src/momentum-correction.ts";
import { msTopKCompressor } from "../../src/ms-top-k.ts";
import { randomKCompressor } from "../../src/random-k.ts";
import { thresholdCompressor } from "../../src/threshold.ts";
import { topKCompressor } from "../../src/top-k.ts";
import type { Row } from "./row.ts";

const kept = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));
/** Returns k/n, and 0 for an empty gradient. */
const share = (k: number, n: number): number => (n === 0 ? 0 : k / n);

const gathered = (bytes: number, worldSize: number): number => (worldSize - 1) * bytes;
const allReduced = (bytes: number, worldSize: number): number => (2 * (worldSize - 1) * bytes) / worldSize;

const topK = (density: number): Omit<Row, "name" | "aggregator"> => ({
  bytes: (bucket, worldSize) => gathered(8 * kept(density, lengthOf(bucket)), worldSize),
  contraction: (bucket) => share(kept(density, lengthOf(bucket)), lengthOf(bucket)),
  dense: topKCompressor({ density: 1 }),
  conservation: 0,
  permutation: false, // ties are broken by index
  scale: true,
  odd: true,
  randomised: false,
});

const randomK = (density: number): Omit<Row, "name" | "aggregator"> => ({
  bytes: (bucket, worldSize) => allReduced(4 * kept(density, lengthOf(bucket)), worldSize),
  contraction: (bucket) => share(kept(density, lengthOf(bucket)), lengthOf(bucket)),
  dense: randomKCompressor({ density: 1 }),
  conservation: 0,
  permutation: false,
  scale: true,
  odd: true,
  randomised: true,
});

const threshold = (capacity: number): Omit<Row, "name" | "aggregator"> => ({
  bytes: (bucket, worldSize) => gathered(8 * kept(capacity, lengthOf(bucket)), worldSize),
  bytesAreMost: true,
  dense: thresholdCompressor({ threshold: 2 ** -149, capacity: 1 }),
  conservation: 0,
  permutation: capacity === 1, // false if more entries reach the threshold than fit
  scale: false,
  odd: true,
  randomised: false,
});

const gaussianK = (density: number): Omit<Row, "name" | "aggregator"> => ({
  bytes: (bucket, worldSize) => {
    const n = lengthOf(bucket);
    return gathered(8 * Math.min(n, Math.ceil((4 / 3) * kept(density, n))), worldSize);
  },
  bytesAreMost: true,
  dense: gaussianKCompressor({ density: 1 }),
  conservation: 0,
  permutation: false, // ties that do not fit are broken
  scale: true,
  odd: true,
  randomised: false,
});

const msTopK = (density: number): Omit<Row, "name" | "aggregator"> => ({
  ...topK(density),
  // The choice within a bracket may lose up to w = (M − m)/2²³, and rounding three times that: k·2Mw, and ‖u‖² ≥ M². A
  // sample gives no bound.
  contraction: (bucket) =>
    lengthOf(bucket) > 2 ** 18
      ? undefined
      : share(kept(density, lengthOf(bucket)), lengthOf(bucket)) - kept(density, lengthOf(bucket)) * 2 ** -20,
  dense: msTopKCompressor({ density: 1 }),
});

export const sparsifierRows: readonly Row[] = [
  { ...topK(0.1), name: "top-k", aggregator: topKCompressor({ density: 0.1 }) },
  {
    ...topK(0.25),
    name: "top-k with error feedback",
    aggregator: withErrorFeedback(topKCompressor({ density: 0.25 })),
    dense: withErrorFeedback(topKCompressor({ density: 1 })),
  },
  { ...randomK(0.3), name: "random-k", aggregator: randomKCompressor({ density: 0.3 }) },
  {
    name: "scaled random-k",
    aggregator: randomKCompressor({ density: 0.3, scaled: true }),
    bytes: randomK(0.3).bytes,
    dense: randomKCompressor({ density: 1, scaled: true }),
    conservation: 2e-6, // n/k times the rounding error of a sum
    permutation: false,
    scale: true,
    odd: true,
    randomised: true,
  },
  {
    ...randomK(0.25),
    name: "random-k with error feedback",
    aggregator: withErrorFeedback(randomKCompressor({ density: 0.25 })),
    dense: withErrorFeedback(randomKCompressor({ density: 1 })),
  },
  { ...threshold(1), name: "threshold", aggregator: thresholdCompressor({ threshold: 0.5, capacity: 1 }) },
  {
    ...threshold(0.25),
    name: "threshold with error feedback",
    aggregator: withErrorFeedback(thresholdCompressor({ threshold: 0.5, capacity: 0.25 })),
    dense: withErrorFeedback(thresholdCompressor({ threshold: 2 ** -149, capacity: 1 })),
  },
  { ...gaussianK(0.1), name: "gaussian-k", aggregator: gaussianKCompressor({ density: 0.1 }) },
  {
    ...gaussianK(0.25),
    name: "gaussian-k with error feedback",
    aggregator: withErrorFeedback(gaussianKCompressor({ density: 0.25 })),
    dense: withErrorFeedback(gaussianKCompressor({ density: 1 })),
  },
  { ...msTopK(0.1), name: "ms-top-k", aggregator: msTopKCompressor({ density: 0.1 }) },
  {
    ...msTopK(0.25),
    name: "ms-top-k with error feedback",
    aggregator: withErrorFeedback(msTopKCompressor({ density: 0.25 })),
    dense: withErrorFeedback(msTopKCompressor({ density: 1 })),
  },
  // From a zero state, the velocity equals the gradient, so the first step is that of top-k.
  {
    ...topK(0.25),
    name: "top-k with momentum correction",
    aggregator: withMomentumCorrection(topKCompressor({ density: 0.25 }), { momentum: 0.5 }),
    descent: { errorFeedback: false, margin: 0.1 },
    dense: withMomentumCorrection(topKCompressor({ density: 1 }), { momentum: 0.5 }),
  },
  {
    ...topK(0.1),
    name: "dgc",
    aggregator: dgcAggregator({ density: 0.1 }),
    dense: dgcAggregator({ density: 1 }),
    descent: { errorFeedback: false, learningRate: 0.02, steps: 600, margin: 0.25 },
  },
];
