import type { Aggregator, Bucket } from "../../src/index.ts";
import type { Axes } from "../world.ts";

/** How plain SGD on a quadratic fares with an aggregator, where the usual does not fit. */
export interface Descent {
  /** Default 250. */
  readonly steps?: number;
  /** At first; it falls with 1/(1 + step/50). Default 0.1. */
  readonly learningRate?: number;
  /**
   * Greatest distance to the optimum of dense SGD after the last step, relative to the distance at the start. Default
   * 0.05.
   */
  readonly margin?: number;
  /**
   * Whether to wrap the aggregator in error feedback. Default: when it is biased and nothing in its state is called
   * `residual`.
   */
  readonly errorFeedback?: boolean;
}

/**
 * One aggregator, and what the laws hold it to. Formulas are written down here from the literature, not taken from the
 * code.
 */
export interface Row {
  /** As in job files and docs/algorithms.md. */
  readonly name: string;
  readonly aggregator: Aggregator;
  /** Bytes that a rank sends in one step, averaged over ranks; the most, where the number is known at run time only. */
  bytes(bucket: Bucket, worldSize: number): number;
  /** Whether `bytes` is a bound, not a count. */
  readonly bytesAreMost?: boolean;
  /**
   * Where the aggregator declares one, that. δ of ‖u − sent‖² ≤ (1 − δ)‖u‖² on every rank of so many, in the mean over
   * keys where it draws. Absent where there is none, as for unbiased quantizers.
   */
  contraction?(bucket: Bucket, worldSize: number): number | undefined;
  /**
   * A setting at which the mean must equal that of dense all-reduce: density 1, full rank; and how nearly, relative to
   * the greatest |g|.
   */
  readonly dense?: Aggregator;
  readonly denseTolerance?: number;
  /**
   * |Σ sent − P · mean| and |residual + sent − accumulated| at most, relative to the greatest |g| of the ranks; 0 says to the bit (of f32 sums).
   */
  readonly conservation: number;
  /** C(πu) = πC(u). */
  readonly permutation: boolean;
  /** C(cu) = cC(u) for c a power of two. */
  readonly scale: boolean;
  /** C(−u) = −C(u). */
  readonly odd: boolean;
  /** Draws on the key. */
  readonly randomised: boolean;
  /** Steps that it takes to come around where steps differ: 2 where factors alternate. Default 1. */
  readonly period?: number;
  /** The aggregators of one round, where they differ from step to step; the first is `aggregator`. */
  readonly cycle?: readonly Aggregator[];
  /** What an entry of zero may become, where that is not zero. */
  readonly ofZero?: readonly number[];
  readonly descent?: Descent;
  /** Further mesh axes, for a world of P ranks laid out so: axis → groups of ranks. */
  axes?(worldSize: number): Axes;
}
