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
import { checkDensity, numKeptEntries, minKeptEnergyShare } from "./density.ts";

export interface RandomKCompressorOptions {
  /** Share of entries to send, in (0, 1]. */
  readonly density: number;
  /**
   * Whether to multiply by n/k, so that the expectation equals the gradient. Default: false, for use with error
   * feedback.
   */
  readonly scaled?: boolean;
}

export interface RandomKPayload {
  /** Values, f32 [k]. The indices follow from the key. */
  readonly values: Tensor;
}

const remainder = (x: Tensor, divisor: Tensor | number): Tensor => subtract(x, multiply(divide(x, divisor), divisor));

/**
 * Draws `k` different indices below `n`. All indices are equally likely, up to a bias of n / 2³².
 *
 * The circle of indices is rotated by a random amount and divided into k arcs with lengths that differ by at most 1.
 * One index is drawn from each arc. Arcs are disjoint, so no index is drawn twice. All indices are equally likely,
 * because the rotation is uniform. Expectation and contraction of random-k require only this. Not all index sets are
 * equally likely: two adjacent indices are rarely drawn together. A shuffle, or the top-k of random numbers, would make
 * all sets equally likely, but needs n random words instead of k + 1.
 *
 * @returns i32 [k], ascending except at the one index where the circle wraps around.
 * Source: Cochran, Sampling Techniques, 1977, §5A (one unit per stratum).
 */
export const randomPositions = (key: Tensor, n: number, k: number): Tensor => {
  if (k === 0) return zeros([0], "i32");
  const [length, numLonger] = [Math.floor(n / k), n % k];
  const bits = randomBits(key, [k + 1]);
  const arc = arange(k, "u32");
  const begin = add(multiply(arc, length), minimum(arc, numLonger));
  const within = remainder(slice(bits, [0], [k]), add(cast(less(arc, numLonger), "u32"), length));
  const rotated = add(add(begin, within), remainder(slice(bits, [k]), n));
  return cast(where(greaterEqual(rotated, n), subtract(rotated, n), rotated), "i32");
};

/**
 * Random-k: sends the same `k` random entries on every rank. The indices follow from the key, so only values are sent,
 * and an all-reduce can add them.
 *
 * `k = max(1, ⌊density · n⌋)`. By default, `E ‖u − C(u)‖² = (1 − k/n)‖u‖²`: biased, wrap it in `withErrorFeedback`.
 * With `scaled`, entries are multiplied by n/k, and `E C(u) = u` with variance `(n/k − 1)‖u‖²`: unbiased, use it
 * without error feedback.
 *
 * A non-finite entry in the gradient makes all values NaN, because this entry might not be drawn.
 *
 * @throws ArgumentError if the density is outside (0, 1], or if `exchange` gets no `key`.
 * Cost: 4k bytes per rank, by all-reduce: 8k(P−1)/P sent.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(randomKCompressor({ density: 0.5 }));
 * const send = (w: Tensor, key: Tensor) =>
 *   exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor, key })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]), randomKey(1));
 * console.log(sent.toNumbers()); // [0, -4, 0, 2]
 * ```
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
        "randomKCompressor draws indices from a key, but no key was given; pass `key` to exchange, a new key in every step",
      );
    return randomPositions(key, n, numKeptEntries(density, n));
  };
  return defineCompressor<[], RandomKPayload>({
    name: `${scaled ? "scaled " : ""}random-k ${density}`,
    aggregation: "sum",
    biased: !scaled,
    scope: "bucket",
    ...(!scaled && {
      contraction: ({ shape }) => minKeptEnergyShare(numKeptEntries(density, elementCount(shape)), elementCount(shape)),
    }),
    init: () => [],
    encode: (gradient, state, context) => {
      const flat = flatten(gradient);
      const n = flat.shape[0]!;
      const kept = gather(flat, positions(context, n));
      const values = scaled ? multiply(kept, n / Math.max(1, numKeptEntries(density, n))) : kept;
      return { payload: { values: where(all(isFinite(flat)), values, NaN) }, state };
    },
    decode: ({ values }, { shape }, context) => {
      const n = elementCount(shape);
      return reshape(scatterAdd(zeros([n]), positions(context, n), values), shape);
    },
    payloadBytes: ({ shape }) => 4 * numKeptEntries(density, elementCount(shape)),
  });
};
