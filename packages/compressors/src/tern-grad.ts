import {
  absolute,
  add,
  allGather,
  allReduce,
  allToAll,
  ArgumentError,
  axisSize,
  cast,
  divide,
  equal,
  flatten,
  isFinite,
  less,
  minimum,
  multiply,
  pad,
  reshape,
  slice,
  split,
  stack,
  subtract,
  type Tensor,
  uniform,
  where,
} from "@skein/tensor-core";
import type { AggregationHalves, Aggregator } from "./aggregator.ts";
import { addPlanes, type BitPlanes, packPlanes, planesFor, unpackPlanes } from "./bit-planes.ts";
import { type Bucket, lengthOf } from "./bucket.ts";
import { aggregateInHalves } from "./in-halves.ts";
import { ownKey } from "./own-key.ts";
import { relativeNorm } from "./relative-norm.ts";

export interface TernGradOptions {
  /** c: entries beyond c times the root mean square are cut to it first; Infinity for none. Default: 2.5. */
  readonly clip?: number;
}

interface PendingShard {
  /** u32 `[bits, words]`: the sums of this rank's shard. */
  readonly sums: Tensor;
  /** f32 `[1]`, equal on all ranks. */
  readonly scale: Tensor;
}

const shardWords = (bucket: Bucket, numRanks: number): number => Math.ceil(Math.ceil(lengthOf(bucket) / 32) / numRanks);

/**
 * Send each entry as −1, 0 or +1 times one scale: `s · sign(v_j) · b_j` with b_j = 1 at probability |v_j|/s, v the gradient cut to ±cσ, σ its
 * root mean square (the mean is taken as 0), and s the greatest |v_j| of all ranks. Because they share the scale, ranks add whole numbers.
 * Each rank draws for itself; the exchange needs a key.
 *
 * Without clipping the expectation is exact, of variance `Σ |v_j|(s − |v_j|)`. Clipping makes s, and with it the variance, much smaller, and a bias.
 *
 * Ternary numbers of shard r go to rank r by all-to-all, which adds their bits up; sums, from −P to P, go to all by all-gather. In halves: up
 * to the sums; the all-gather. A NaN or an infinity on any rank makes the scale infinite, and with it all of the mean.
 *
 * @throws ArgumentError unless clip is above 0.
 * Cost: `4(P−1)(2 + ⌈log₂(2P + 1)⌉) ⌈⌈n/32⌉/P⌉ + 8(P−1)/P` bytes sent: `(P−1)/P` of 2 bits per entry and of 3 to 5 for 2 to 15 ranks, and the
 * scale, in a round of its own. All-gather of the ternary numbers would take 2(P−1) bits per entry, which is less for 2 ranks only.
 * Source: Wen et al. 2017, arXiv 1705.07878.
 */
export const ternGradAggregator = ({ clip = 2.5 }: TernGradOptions = {}): Aggregator<[]> => {
  if (!(clip > 0))
    throw new ArgumentError(
      `ternGradAggregator: a gradient cannot be clipped at ${clip} deviations; use a number above 0, Infinity for no clipping`,
    );
  const halves: AggregationHalves<[]> = {
    begin: (gradient, state, bucket, context) => {
      const { axis, collective } = context;
      const numRanks = axisSize(axis);
      const count = lengthOf(bucket);
      const { greatest, norm } = relativeNorm(gradient);
      const perDeviation = clip / Math.sqrt(Math.max(1, count));
      const bound = clip === Infinity ? greatest : multiply(greatest, minimum(multiply(norm, perDeviation), 1));
      // Infinity instead of NaN: every implementation of a maximum carries it to all ranks.
      const scale = allReduce(where(isFinite(bound), bound, Infinity), axis, "max", collective);
      const probability = divide(minimum(absolute(gradient), bound), where(equal(scale, 0), 1, scale));
      const isSent = less(uniform(ownKey("ternGradAggregator", context), [count]), probability);
      const ternary = where(isSent, where(less(gradient, 0), -1, 1), 0);

      const words = shardWords(bucket, numRanks);
      const shardsOf = (plane: Tensor): Tensor => reshape(pad(plane, [[0, words * numRanks - plane.shape[0]!]]), [numRanks, words]);
      const planes = packPlanes(cast(add(ternary, 1), "u32"), 2).map(shardsOf);
      const received = split(allToAll(stack(planes, 1), axis, collective), numRanks);
      const terms = received.map((term): BitPlanes => split(reshape(term, [2 * words]), 2));
      const sums = stack(addPlanes(terms, 2 * numRanks));
      return { pending: { sums, scale } satisfies PendingShard, sent: multiply(ternary, scale), state };
    },
    finish: (pending, bucket, { axis, collective }) => {
      const { sums, scale } = pending as PendingShard;
      const numRanks = axisSize(axis);
      const count = lengthOf(bucket);
      const [bits, words] = sums.shape as [number, number];
      const gathered = reshape(allGather(sums, axis, collective), [numRanks, bits, words]);
      const planes = split(gathered, bits, 1).map((plane) => slice(flatten(plane), [0], [Math.ceil(count / 32)]));
      return multiply(subtract(unpackPlanes(planes, count), numRanks), multiply(scale, 1 / numRanks));
    },
  };
  return {
    name: "TernGrad",
    biased: Number.isFinite(clip),
    init: () => [],
    aggregate: aggregateInHalves(halves),
    halves,
    bytesSent: (bucket, worldSize) =>
      4 * (worldSize - 1) * (2 + planesFor(2 * worldSize)) * shardWords(bucket, worldSize) + (8 * (worldSize - 1)) / worldSize,
  };
};
