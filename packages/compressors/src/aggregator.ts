import type { Tensor } from "@skein/tensor-core";
import type { Bucket } from "./bucket.ts";
import type { AggregateContext } from "./context.ts";

/**
 * Scope of entries that together decide what is sent of one entry. "tensor": only entries of the same tensor, so that
 * the result does not depend on which tensors share a bucket, except for random draws. "bucket": all entries of the
 * same bucket. For selection over a whole model, use a bucket that holds the whole model.
 */
export type SelectionScope = "tensor" | "bucket";

/** Returns the widest of several scopes. */
export const widestScope = (scopes: readonly SelectionScope[]): SelectionScope =>
  scopes.includes("bucket") ? "bucket" : "tensor";

/** Result of one step of an aggregator. */
export interface Aggregated<State> {
  /** Mean gradient, f32 `[n]`, bit-identical on all ranks. */
  readonly mean: Tensor;
  /**
   * Part of this rank's gradient that is included in the mean, f32 `[n]`. The sum of `sent` over all ranks is P times
   * `mean`. So the part that is missing from `sent` is missing from the mean, and error feedback keeps that part.
   */
  readonly sent: Tensor;
  readonly state: State;
}

/** Result of the first half of an aggregation, as input for the second half. */
export interface StartedAggregation<State> {
  /** Tree of tensors. Can be carried into the next step. */
  readonly pending: unknown;
  readonly sent: Tensor;
  readonly state: State;
}

/**
 * An aggregation in two halves, so that other work can run between them. Run the first half as soon as gradients are
 * ready, and the second half before the mean is needed.
 */
export interface AggregationHalves<State> {
  begin(gradient: Tensor, state: State, bucket: Bucket, context: AggregateContext): StartedAggregation<State>;
  finish(pending: unknown, bucket: Bucket, context: AggregateContext): Tensor;
}

/**
 * An algorithm that turns the gradients of all ranks into their mean: traced functions that contain collectives, and
 * declared properties. `State` is a tree of tensors with everything that an aggregator remembers between steps; each
 * rank has its own state. `exchange` carries the state per bucket, and never reads `name`.
 *
 * A gradient with a NaN or an infinity on any rank makes the mean of its bucket non-finite on all ranks. So the step
 * stops, and no residual hides the value.
 *
 * The methods are methods (not function properties) so that aggregators of different states fit one `Aggregator`.
 */
export interface Aggregator<State = unknown> {
  /** Name for reports only. */
  readonly name?: string;
  /** Whether the expectation of `sent` differs from the gradient, so that error feedback is needed to converge. */
  readonly biased: boolean;
  /** "tensor" is a guarantee. "bucket" guarantees nothing. */
  readonly scope: SelectionScope;
  /**
   * Contraction δ with ‖u − sent‖² ≤ (1 − δ)‖u‖² on every one of `worldSize` ranks: the minimum share of any gradient's
   * energy that is sent; in expectation for a randomized aggregator. Absent, or undefined for some world sizes or
   * lengths: no bound is known, because entries of other ranks may displace a rank's own entries.
   */
  contraction?(bucket: Bucket, worldSize: number): number | undefined;
  /** Returns the state before the first step; traced. */
  init(bucket: Bucket): State;
  aggregate(gradient: Tensor, state: State, bucket: Bucket, context: AggregateContext): Aggregated<State>;
  /**
   * Aggregation in two halves. Present if carrying the second half into the next step pays off. The halves may
   * send up to P more elements than `bytesSent` returns, because shards are padded.
   */
  readonly halves?: AggregationHalves<State>;
  /**
   * Exact number of bytes that a rank sends in one step, averaged over the ranks; the maximum if the payload length is
   * known only at run time.
   */
  bytesSent(bucket: Bucket, worldSize: number): number;
}
