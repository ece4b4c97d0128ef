import type { Aggregator, Bucket } from "../../src/index.ts";
import type { Axes } from "../world.ts";

/** Settings for plain SGD on a quadratic with an aggregator. Absent settings have their default. */
export interface Descent {
  /** Number of SGD steps. Default: 250. */
  readonly steps?: number;
  /** Initial learning rate; decays with 1/(1 + step/50). Default: 0.1. */
  readonly learningRate?: number;
  /**
   * Maximum distance to the optimum of dense SGD after the last step, relative to the initial distance. Default: 0.05.
   */
  readonly margin?: number;
  /**
   * Whether to wrap the aggregator in error feedback. Default: true for a biased aggregator whose state has no leaf
   * named `residual`.
   */
  readonly errorFeedback?: boolean;
}

/** An aggregator with its expected properties. Formulas are written from the literature, not copied from the code. */
export interface Row {
  /** Name as in job files and docs/algorithms.md. */
  readonly name: string;
  readonly aggregator: Aggregator;
  /** Bytes that a rank sends in one step, averaged over ranks; the maximum if the number is known only at run time. */
  bytes(bucket: Bucket, worldSize: number): number;
  /** Whether `bytes` is an upper bound instead of an exact count. */
  readonly bytesAreMost?: boolean;
  /**
   * Contraction δ with ‖u − sent‖² ≤ (1 − δ)‖u‖² on every one of `worldSize` ranks, averaged over keys for a randomized
   * aggregator. Must equal the aggregator's declared contraction, if declared. Absent: no contraction is known, as for
   * unbiased quantizers.
   */
  contraction?(bucket: Bucket, worldSize: number): number | undefined;
  /**
   * Aggregator of the same method whose mean must equal the mean of a dense all-reduce, for example with density 1 or
   * full rank.
   */
  readonly dense?: Aggregator;
  readonly denseTolerance?: number;
  /**
   * Tolerance of |Σ sent − P · mean| and of |residual + sent − accumulated|, relative to the largest |g| of all ranks.
   * 0: bit-exact, for f32 sums.
   */
  readonly conservation: number;
  /** Whether C(πu) = πC(u) for every permutation π. */
  readonly permutation: boolean;
  /** Whether C(cu) = cC(u) for c a power of two. */
  readonly scale: boolean;
  /** Whether C(−u) = −C(u). */
  readonly odd: boolean;
  /** Whether the result depends on the key. */
  readonly randomised: boolean;
  /** Number of steps in a cycle: 2 for alternating factors. Default: 1. */
  readonly period?: number;
  /**
   * Aggregators of one cycle, in step order. The first aggregator is `aggregator`. Absent: `aggregator` in every step.
   */
  readonly cycle?: readonly Aggregator[];
  /** Possible results for a zero entry. Default: zero. */
  readonly ofZero?: readonly number[];
  readonly descent?: Descent;
  /** Additional mesh axes for a world of P ranks, by axis name: the groups of ranks along the axis. */
  axes?(worldSize: number): Axes;
}
