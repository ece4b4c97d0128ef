import { elementCount } from "@skein/tensor-core";
import { acpSgdCycle } from "../../src/acp-sgd.ts";
import type { Bucket } from "../../src/index.ts";
import { withErrorFeedback } from "../../src/index.ts";
import { powerSgdAggregator } from "../../src/power-sgd.ts";
import type { Row } from "./row.ts";

/**
 * Returns the number of elements of the rank-r factors P and Q, for the matrices of a bucket for which `pays` returns
 * true (r = min(rank, n, m)), and of all other tensors (`dense`).
 */
const factors = ({ tensors }: Bucket, rank: number, pays: (elements: number, sent: number) => boolean) => {
  const counts = { p: 0, q: 0, dense: 0 };
  for (const { shape } of tensors) {
    const elements = elementCount(shape);
    const m = shape.at(-1) ?? 1;
    const n = elements === 0 ? 0 : elements / m;
    const r = Math.min(rank, n, m);
    if (shape.length >= 2 && elements > 0 && pays(elements, r * (n + m))) {
      counts.p += n * r;
      counts.q += m * r;
    } else counts.dense += elements;
  }
  return counts;
};

const reduced = (elements: number, worldSize: number): number => (2 * (worldSize - 1) * 4 * elements) / worldSize;

const powerBytes =
  (rank: number, minimum: number): Row["bytes"] =>
  (bucket, worldSize) => {
    const { p, q, dense } = factors(bucket, rank, (elements, sent) => elements > minimum * sent);
    return reduced(p + q + dense, worldSize);
  };

const acpBytes =
  (rank: number, minimum: number): Row["bytes"] =>
  (bucket, worldSize) => {
    const { p, dense } = factors(bucket, rank, (elements, sent) => elements > (minimum * sent) / 2);
    return reduced(p + dense, worldSize);
  };

const acp = acpSgdCycle({ rank: 1 });
const acpWide = acpSgdCycle({ rank: 2, minimumCompression: 0 }).map((one) => withErrorFeedback(one));

// A projection never lengthens a vector. At full rank, it keeps everything.
const plain = {
  conservation: 4e-6,
  denseTolerance: 4e-6,
  permutation: false,
  scale: true,
  odd: true,
  randomised: false,
} as const;

export const lowRankRows: readonly Row[] = [
  {
    ...plain,
    name: "power-sgd",
    aggregator: powerSgdAggregator({ rank: 1 }),
    bytes: powerBytes(1, 2),
    contraction: () => 0,
    dense: powerSgdAggregator({ rank: 64, minimumCompression: 0 }),
  },
  {
    ...plain,
    name: "power-sgd with error feedback",
    aggregator: withErrorFeedback(powerSgdAggregator({ rank: 2, minimumCompression: 0 })),
    bytes: powerBytes(2, 0),
    contraction: () => 0,
    dense: withErrorFeedback(powerSgdAggregator({ rank: 64 })),
    descent: { steps: 150 },
  },
  {
    ...plain,
    name: "acp-sgd",
    aggregator: acp[0],
    cycle: acp,
    period: 2,
    bytes: acpBytes(1, 2),
    contraction: () => 0,
    // None of the tested buckets has matrices with fewer rows than columns.
    dense: acpSgdCycle({ rank: 64, minimumCompression: 0 })[0],
  },
  {
    ...plain,
    name: "acp-sgd with error feedback",
    aggregator: acpWide[0]!,
    cycle: acpWide,
    period: 2,
    bytes: acpBytes(2, 0),
    contraction: () => 0,
  },
];
