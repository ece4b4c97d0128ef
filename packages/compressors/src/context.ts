import type { CollectiveOptions, Tensor } from "@skein/tensor-core";

/** Optional inputs of an encoder, in addition to gradient and state. */
export interface EncodeContext {
  /**
   * Random key u32[2], different for each step and bucket, equal on all ranks. For different random numbers on each
   * rank, fold in `rank`.
   */
  readonly key?: Tensor;
  /** Index of this rank along the axis of the exchange, i32 scalar. Present if `key` is present. */
  readonly rank?: Tensor;
  /** Step number, u32 scalar, 0 for the first step. */
  readonly step?: Tensor;
}

/** Inputs of an aggregator in addition to gradient and state. */
export interface AggregateContext extends EncodeContext {
  /** Mesh axis over whose ranks the mean is computed. */
  readonly axis: string;
  /** Options of each collective that the aggregator runs. */
  readonly collective?: CollectiveOptions;
}
