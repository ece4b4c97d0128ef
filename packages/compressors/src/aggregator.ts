import type { Tensor } from "@skein/tensor-core";
import type { Bucket } from "./bucket.ts";
import type { AggregateContext } from "./context.ts";

/**
 * What is looked at together to decide what of an entry is sent. "tensor": at most the tensor that it is in, so that it
 * does not matter which tensors share a bucket, draws aside; "bucket": whatever else is in its bucket, too. Over a
 * whole model: a bucket that holds all of it.
 */
export type SelectionScope = "tensor" | "bucket";

/** The wider of some scopes. */
export const widestScope = (scopes: readonly SelectionScope[]): SelectionScope =>
  scopes.includes("bucket") ? "bucket" : "tensor";

/** What comes of a step of an aggregator. */
export interface Aggregated<State> {
  /** f32 `[n]`, the same bits on all ranks. */
  readonly mean: Tensor;
  /**
   * f32 `[n]`: what of this rank's gradient has gone into the mean. Over all ranks it adds up to P times `mean`; so
   * what is missing from it is missing from the mean, and error feedback keeps it.
   */
  readonly sent: Tensor;
  readonly state: State;
}

/** What the first half of an aggregation leaves for the second. */
export interface Begun<State> {
  /** Tree of tensors; carried over the end of a step. */
  readonly pending: unknown;
  readonly sent: Tensor;
  readonly state: State;
}

/**
 * An aggregation in two halves, between which other work may be done: the first as soon as gradients are ready, the
 * second before they are needed.
 */
export interface AggregationHalves<State> {
  begin(gradient: Tensor, state: State, bucket: Bucket, context: AggregateContext): Begun<State>;
  finish(pending: unknown, bucket: Bucket, context: AggregateContext): Tensor;
}

/**
 * How the gradients of all ranks become their mean: traced functions with collectives inside, and declared facts. What
 * it must remember is in `State`, a tree of tensors, each rank's own. `exchange` carries it bucket by bucket; nobody
 * asks for its name.
 *
 * A gradient with a NaN or an infinity on any rank makes the mean of its bucket non-finite on all ranks, so that the
 * step stops instead of hiding it in a residual.
 *
 * The methods are methods (not function properties) so that aggregators of different states fit one `Aggregator`.
 */
export interface Aggregator<State = unknown> {
  /** For reports only. */
  readonly name?: string;
  /** Whether the expectation of `sent` differs from the gradient, so that error feedback is needed to converge. */
  readonly biased: boolean;
  /** "tensor" is a promise; "bucket" says that there is none. */
  readonly scope: SelectionScope;
  /**
   * δ of ‖u − sent‖² ≤ (1 − δ)‖u‖² on every rank of so many: the part of any gradient that is sent at least, in
   * expectation where it draws. Absent, or undefined for some numbers of ranks or lengths, where none is known: what
   * the other ranks send may crowd out a rank's own.
   */
  contraction?(bucket: Bucket, worldSize: number): number | undefined;
  /** State before the first step; traced. */
  init(bucket: Bucket): State;
  aggregate(gradient: Tensor, state: State, bucket: Bucket, context: AggregateContext): Aggregated<State>;
  /**
   * The same in two halves, where the second is worth carrying over the end of a step. They may send up to P more
   * elements than `bytesSent` says, to fill shards.
   */
  readonly halves?: AggregationHalves<State>;
  /**
   * Exact bytes that a rank sends in one step, averaged over the ranks; of those whose length is known at run time
   * only, the most.
   */
  bytesSent(bucket: Bucket, worldSize: number): number;
}
