import {
  absolute,
  add,
  allGather,
  allReduce,
  allToAll,
  ArgumentError,
  broadcastTo,
  cast,
  concat,
  divide,
  elementCount,
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
import { axisSize } from "@skein/tensor-core/backend";
import type { AggregationHalves, Aggregator } from "./aggregator.ts";
import { addPlanes, type BitPlanes, packPlanes, planesFor, unpackPlanes } from "./bit-planes.ts";
import { type Bucket, lengthOf } from "./bucket.ts";
import { aggregateInHalves } from "./aggregate-in-halves.ts";
import { ownKey } from "./own-key.ts";
import { relativeNorm } from "./relative-norm.ts";

export interface TernGradOptions {
  /**
   * Clipping factor c: entries above c times the root mean square of their tensor are clipped first. Infinity disables
   * clipping. Default: 2.5, as in the paper.
   */
  readonly clip?: number;
}

interface PendingShard {
  /** Sums of the ternary numbers in this rank's shard over all ranks, as bit planes, u32 `[bits, words]`. */
  readonly sums: Tensor;
  /** Scale of each tensor, equal on all ranks, f32 `[tensors]`. */
  readonly scales: Tensor;
}

/** Broadcasts one value per tensor of a bucket to all entries of the tensor: f32 [t] to f32 [n]. */
const broadcastPerTensor = (values: Tensor, { tensors }: Bucket): Tensor => {
  if (tensors.length === 0) return values;
  return concat(tensors.map(({ shape }, i) => broadcastTo(slice(values, [i], [i + 1]), [elementCount(shape)])));
};

/** Returns the greatest magnitude of each tensor of a bucket after clipping to ±cσ: f32 [t]. */
const boundsOf = (gradient: Tensor, { tensors }: Bucket, clip: number): Tensor => {
  if (tensors.length === 0) return gradient;
  const sizes = tensors.map(({ shape }) => elementCount(shape));
  return concat(
    split(gradient, sizes).map((tensor, i) => {
      const { greatest, norm } = relativeNorm(tensor);
      return clip === Infinity
        ? greatest
        : multiply(greatest, minimum(multiply(norm, clip / Math.sqrt(Math.max(1, sizes[i]!))), 1));
    }),
  );
};

const shardWords = (bucket: Bucket, numRanks: number): number => Math.ceil(Math.ceil(lengthOf(bucket) / 32) / numRanks);

/**
 * TernGrad: sends each entry as −1, 0 or +1 times the scale of its tensor: `s · sign(v_j) · b_j`, where b_j is 1 with
 * probability |v_j|/s, and 0 otherwise. v is the tensor's gradient clipped to ±cσ, σ its root mean square (the mean is
 * assumed to be 0), and s the greatest |v_j| over all ranks. Scales are equal on all ranks, so that ranks can add
 * integers. Each tensor has a separate scale, so that small gradients are not lost next to large gradients. Each rank
 * draws different random numbers, so the exchange needs a key.
 *
 * Without clipping, the expectation is exact, with variance `Σ |v_j|(s − |v_j|)`. Clipping makes s much smaller, and
 * therefore also the variance, but adds a bias.
 *
 * An all-to-all sends the ternary numbers of shard r to rank r, which adds their bits. An all-gather distributes the
 * sums, from −P to P. The first half computes the sums; the second half is the all-gather. A NaN or an infinity on any
 * rank makes the scale of its tensor infinite, and the tensor's mean non-finite.
 *
 * @throws ArgumentError unless clip is above 0.
 * Cost: `4(P−1)(2 + ⌈log₂(2P + 1)⌉) ⌈⌈n/32⌉/P⌉ + 8t(P−1)/P` bytes sent: `(P−1)/P` times 2 bits plus 3 to 5 bits per
 * entry (for 2 to 15 ranks), and the scales of t tensors in a separate round. An all-gather of the ternary numbers
 * would send 2(P−1) bits per entry, which is less only for 2 ranks.
 * @example
 * ```ts
 * const compressor = ternGradAggregator();
 * const send = (w: Tensor, key: Tensor) =>
 *   exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor, key })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]), randomKey(1));
 * console.log(sent.toNumbers()); // [0, -4, 4, 0]
 * ```
 * Source: Wen et al. 2017, arXiv 1705.07878.
 */
export const ternGradAggregator = ({ clip = 2.5 }: TernGradOptions = {}): Aggregator<[]> => {
  if (!(clip > 0))
    throw new ArgumentError(
      `ternGradAggregator: clip ${clip} is not above 0; use a number of deviations such as 2.5, or Infinity for no clipping`,
    );
  const halves: AggregationHalves<[]> = {
    begin: (gradient, state, bucket, context) => {
      const { axis, collective } = context;
      const numRanks = axisSize(axis);
      const count = lengthOf(bucket);
      const bounds = boundsOf(gradient, bucket, clip);
      // Uses infinity instead of NaN, because every implementation of max propagates infinity to all ranks.
      const scales = allReduce(where(isFinite(bounds), bounds, Infinity), axis, "max", collective);
      const scale = broadcastPerTensor(scales, bucket);
      const probability = divide(
        minimum(absolute(gradient), broadcastPerTensor(bounds, bucket)),
        where(equal(scale, 0), 1, scale),
      );
      const isSent = less(uniform(ownKey("ternGradAggregator", context), [count]), probability);
      const ternary = where(isSent, where(less(gradient, 0), -1, 1), 0);

      const words = shardWords(bucket, numRanks);
      const shardsOf = (plane: Tensor): Tensor =>
        reshape(pad(plane, [[0, words * numRanks - plane.shape[0]!]]), [numRanks, words]);
      const planes = packPlanes(cast(add(ternary, 1), "u32"), 2).map(shardsOf);
      const received = split(allToAll(stack(planes, { dim: 1 }), axis, collective), numRanks);
      const terms = received.map((term): BitPlanes => split(reshape(term, [2 * words]), 2));
      const sums = stack(addPlanes(terms, 2 * numRanks));
      return { pending: { sums, scales } satisfies PendingShard, sent: multiply(ternary, scale), state };
    },
    finish: (pending, bucket, { axis, collective }) => {
      const { sums, scales } = pending as PendingShard;
      const numRanks = axisSize(axis);
      const count = lengthOf(bucket);
      const [bits, words] = sums.shape as [number, number];
      const gathered = reshape(allGather(sums, axis, collective), [numRanks, bits, words]);
      const planes = split(gathered, bits, { dim: 1 }).map((plane) =>
        slice(flatten(plane), [0], [Math.ceil(count / 32)]),
      );
      return multiply(
        subtract(unpackPlanes(planes, count), numRanks),
        broadcastPerTensor(multiply(scales, 1 / numRanks), bucket),
      );
    },
  };
  return {
    name: "TernGrad",
    biased: Number.isFinite(clip),
    scope: "tensor",
    init: () => [],
    aggregate: aggregateInHalves(halves),
    halves,
    bytesSent: (bucket, worldSize) =>
      4 * (worldSize - 1) * (2 + planesFor(2 * worldSize)) * shardWords(bucket, worldSize) +
      (8 * bucket.tensors.length * (worldSize - 1)) / worldSize,
  };
};
