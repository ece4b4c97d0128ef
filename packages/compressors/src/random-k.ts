import {
  add,
  all,
  arange,
  ArgumentError,
  cast,
  divide,
  elementCount,
  flatten,
  gather,
  greaterEqual,
  isFinite,
  less,
  minimum,
  multiply,
  randomBits,
  reshape,
  scatterAdd,
  slice,
  subtract,
  type Tensor,
  where,
  zeros,
} from "@skein/tensor-core";
import type { EncodeContext } from "./context.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";
import { checkDensity, keptEntries, keptShare } from "./density.ts";

export interface RandomKCompressorOptions {
  /** Share of entries to send, in (0, 1]. */
  readonly density: number;
  /** Multiply by n/k, so that the expectation is the gradient. Default: false, for use with error feedback. */
  readonly scaled?: boolean;
}

export interface RandomKPayload {
  /** f32 [k]; their positions follow from the key. */
  readonly values: Tensor;
}

const remainder = (x: Tensor, divisor: Tensor | number): Tensor => subtract(x, multiply(divide(x, divisor), divisor));

/**
 * `k` different numbers below `n`, each equally likely to be among them, up to a bias of n / 2³².
 *
 * The circle of positions is turned by a random amount and cut into k arcs whose lengths differ by 1 at most; one
 * position is drawn from each. Arcs are disjoint, so no position comes twice; and every position is as likely as any
 * other, because the turn is. That is all that the expectation and the contraction of random-k ask for. Not all sets
 * are possible: two neighbours seldom come together. A shuffle or the top-k of random numbers would give all sets, for
 * n random words instead of k + 1.
 *
 * @returns i32 [k], ascending but for one place where the circle closes.
 * Source: Cochran, Sampling Techniques, 1977, §5A (one unit per stratum).
 */
export const randomPositions = (key: Tensor, n: number, k: number): Tensor => {
  if (k === 0) return zeros([0], "i32");
  const [length, numLonger] = [Math.floor(n / k), n % k];
  const bits = randomBits(key, [k + 1]);
  const arc = arange(k, "u32");
  const begin = add(multiply(arc, length), minimum(arc, numLonger));
  const within = remainder(slice(bits, [0], [k]), add(cast(less(arc, numLonger), "u32"), length));
  const turned = add(add(begin, within), remainder(slice(bits, [k]), n));
  return cast(where(greaterEqual(turned, n), subtract(turned, n), turned), "i32");
};

/**
 * Send the same `k` random entries on every rank: which, follows from the key, so only values travel and an all-reduce
 * may add them.
 *
 * `k = max(1, ⌊density · n⌋)`. As it is, `E ‖u − C(u)‖² = (1 − k/n)‖u‖²`: biased, wrap it in `withErrorFeedback`. With
 * `scaled`, entries are multiplied by n/k and `E C(u) = u` with variance `(n/k − 1)‖u‖²`: unbiased, use it without
 * error feedback.
 *
 * A gradient that is not finite throughout makes all values NaN, since the bad entry may not have been drawn.
 *
 * @throws ArgumentError for a density outside (0, 1]; in `exchange` without `key`.
 * Cost: 4k bytes per rank, by all-reduce: 8k(P−1)/P sent.
 * @example withErrorFeedback(randomKCompressor({ density: 0.01 }))
 * Source: Wangni et al. 2018, arXiv 1710.09854 (unbiased); Stich et al. 2018, arXiv 1809.07599 (rand-k with memory).
 */
export const randomKCompressor = ({
  density,
  scaled = false,
}: RandomKCompressorOptions): Compressor<[], RandomKPayload> => {
  checkDensity("randomKCompressor", density);
  const positions = ({ key }: EncodeContext = {}, n: number): Tensor => {
    if (key === undefined)
      throw new ArgumentError(
        "randomKCompressor draws positions from a key, but none was given; pass `key` to exchange, fresh every step",
      );
    return randomPositions(key, n, keptEntries(density, n));
  };
  return defineCompressor<[], RandomKPayload>({
    name: `${scaled ? "scaled " : ""}random-k ${density}`,
    aggregation: "sum",
    biased: !scaled,
    scope: "bucket",
    ...(!scaled && {
      contraction: ({ shape }) => keptShare(keptEntries(density, elementCount(shape)), elementCount(shape)),
    }),
    init: () => [],
    encode: (gradient, state, context) => {
      const flat = flatten(gradient);
      const n = flat.shape[0]!;
      const kept = gather(flat, positions(context, n));
      const values = scaled ? multiply(kept, n / Math.max(1, keptEntries(density, n))) : kept;
      return { payload: { values: where(all(isFinite(flat)), values, NaN) }, state };
    },
    decode: ({ values }, { shape }, context) => {
      const n = elementCount(shape);
      return reshape(scatterAdd(zeros([n]), positions(context, n), values), shape);
    },
    payloadBytes: ({ shape }) => 4 * keptEntries(density, elementCount(shape)),
  });
};
