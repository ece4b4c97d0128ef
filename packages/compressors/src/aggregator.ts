import type { Tensor } from "@skein/tensor-core";
import type { Bucket } from "./bucket.ts";
import type { AggregateContext } from "./context.ts";

/**
 * Range of entries on which the decision to send an entry depends. "tensor": only entries of the same tensor, so that
 * the result, except for random draws, does not depend on which tensors share a bucket. "bucket": all entries of the
 * same bucket. To select over a full model, use one bucket for the full model.
 */
export type SelectionScope = "tensor" | "bucket";

/** Returns the widest of several scopes: "bucket" if one of the scopes is "bucket", otherwise "tensor". */
export const widestScope = (scopes: readonly SelectionScope[]): SelectionScope =>
  scopes.includes("bucket") ? "bucket" : "tensor";

/** Result of one step of an aggregator. */
export interface Aggregated<State> {
  /** Mean gradient, f32 `[n]`, bit-identical on all ranks. */
  readonly mean: Tensor;
  /**
   * Part of this rank's gradient that is included in the mean, f32 `[n]`. The sum of `sent` over all ranks is P times
   * `mean`. A part that is missing from `sent` is also missing from the mean, so error feedback adds this part to the
   * residual.
   */
  readonly sent: Tensor;
  readonly state: State;
}

/** Result of the first half of an aggregation, as input for the second half. */
export interface StartedAggregation<State> {
  /** Input of the second half, a tree of tensors. The second half may run in the next step. */
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
 * An algorithm that computes the mean gradient of all ranks: traced functions that contain collectives, and declared
 * properties. `State` is a tree of tensors that the aggregator passes from step to step; each rank has a separate
 * state. `exchange` stores one state per bucket, and never reads `name`.
 *
 * A gradient with a NaN or an infinity on any rank makes the mean of its bucket non-finite on all ranks. So the step
 * stops, and no residual hides the value.
 *
 * Methods are not declared as function properties, so that aggregators with different state types are assignable to
 * `Aggregator`.
 */
export interface Aggregator<State = unknown> {
  /** Name of the aggregator, for reports only. */
  readonly name?: string;
  /**
   * Whether the expectation of `sent` differs from the gradient. If true, the aggregator needs error feedback to
   * converge.
   */
  readonly biased: boolean;
  /**
   * Scope of the selection of entries. "tensor" guarantees that the result for a tensor does not depend on other
   * tensors of the bucket; "bucket" guarantees nothing.
   */
  readonly scope: SelectionScope;
  /**
   * Returns the contraction δ with ‖u − sent‖² ≤ (1 − δ)‖u‖² on every one of `worldSize` ranks: the minimum share of
   * any gradient's energy that is sent. For a randomized aggregator, the bound holds in expectation. Absent, or
   * undefined for some world sizes or lengths: no bound is known, because entries of other ranks may displace a rank's
   * own entries.
   */
  contraction?(bucket: Bucket, worldSize: number): number | undefined;
  /** Returns the state before the first step; traced. */
  init(bucket: Bucket): State;
  aggregate(gradient: Tensor, state: State, bucket: Bucket, context: AggregateContext): Aggregated<State>;
  /**
   * Aggregation in two halves. Absent: running the second half in the next step would save no time. The halves may send
   * up to P more elements than `bytesSent` returns, because shards are padded.
   */
  readonly halves?: AggregationHalves<State>;
  /**
   * Returns the exact number of bytes that a rank sends in one step, averaged over the ranks. If the payload length is
   * known only at run time, returns the maximum.
   */
  bytesSent(bucket: Bucket, worldSize: number): number;
}
