import { identityCompressor, lengthOf, topKCompressor, withErrorFeedback } from "../../src/index.ts";
import { denseUntil, type AggregatorPhase } from "../../src/phases.ts";
import type { Row } from "./row.ts";

const exact = { conservation: 0, permutation: true, scale: true, odd: true, randomised: false } as const;

const allReduced = (bytes: number, worldSize: number): number => (2 * (worldSize - 1) * bytes) / worldSize;

const [{ aggregator: dense }] = denseUntil(10, withErrorFeedback(topKCompressor({ density: 0.1 }))) as [
  AggregatorPhase,
];

export const basicRows: readonly Row[] = [
  {
    ...exact,
    name: "identity",
    aggregator: identityCompressor(),
    bytes: (bucket, worldSize) => allReduced(4 * lengthOf(bucket), worldSize),
    contraction: () => 1,
    dense: identityCompressor(),
  },
  {
    ...exact,
    name: "identity with error feedback",
    aggregator: withErrorFeedback(identityCompressor()),
    bytes: (bucket, worldSize) => allReduced(4 * lengthOf(bucket), worldSize),
    contraction: () => 1,
    dense: withErrorFeedback(identityCompressor()),
  },
  {
    ...exact,
    name: "dense phase before top-k with error feedback",
    aggregator: dense,
    bytes: (bucket, worldSize) => allReduced(4 * lengthOf(bucket), worldSize),
    contraction: () => 1,
    dense: dense,
  },
  {
    ...exact,
    name: "identity in pieces",
    aggregator: identityCompressor({ chunkBytes: 240 }),
    bytes: (bucket, worldSize) => allReduced(4 * lengthOf(bucket), worldSize),
    contraction: () => 1,
    dense: identityCompressor({ chunkBytes: 4 }),
  },
];
