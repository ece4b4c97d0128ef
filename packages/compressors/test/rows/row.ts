import type { Aggregator, Bucket } from "../../src/index.ts";
import type { Axes } from "../world.ts";

/** Settings of plain SGD on a quadratic with an aggregator, if they differ from the defaults. */
export interface Descent {
  /** Number of steps. Default: 250. */
  readonly steps?: number;
  /** Initial learning rate; decays with 1/(1 + step/50). Default: 0.1. */
  readonly learningRate?: number;
  /**
   * Maximum distance to the optimum of dense SGD after the last step, relative to the initial distance. Default: 0.05.
   */
  readonly margin?: number;
  /**
   * Whether to wrap the aggregator in error feedback. Default: if it is biased and its state has no leaf named
   * `residual`.
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
   * aggregator; the declared value if there is one. Absent: no contraction, as for unbiased quantizers.
   */
  contraction?(bucket: Bucket, worldSize: number): number | undefined;
  /**
   * A setting for which the mean must equal that of a dense all-reduce: density 1, full rank; with the tolerance
   * relative to the largest |g|.
   */
  readonly dense?: Aggregator;
  readonly denseTolerance?: number;
  /**
   * Tolerance of |Σ sent − P · mean| and |residual + sent − accumulated|, relative to the largest |g| of the ranks; 0:
   * bit-exact (for f32 sums).
   */
  readonly conservation: number;
  /** Whether C(πu) = πC(u). */
  readonly permutation: boolean;
  /** Whether C(cu) = cC(u) for c a power of two. */
  readonly scale: boolean;
  /** Whether C(−u) = −C(u). */
  readonly odd: boolean;
  /** Whether the result depends on the key. */
  readonly randomised: boolean;
  /** Number of steps in a cycle: 2 for alternating factors. Default: 1. */
  readonly period?: number;
  /** Aggregators of one cycle, if they differ per step; the first is `aggregator`. */
  readonly cycle?: readonly Aggregator[];
  /** Possible results for a zero entry. Default: zero. */
  readonly ofZero?: readonly number[];
  readonly descent?: Descent;
  /** Additional mesh axes for a world of P ranks: axis → groups of ranks. */
  axes?(worldSize: number): Axes;
}
