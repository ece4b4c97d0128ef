import type { CollectiveOptions, Tensor } from "@skein/tensor-core";

/** What an encoder may draw on beside gradient and state. */
export interface EncodeContext {
  /** u32[2], fresh every step and bucket, equal on all ranks. Fold in `rank` for randomness of one's own. */
  readonly key?: Tensor;
  /** i32 scalar: position of this rank among those that exchange. Given when `key` is. */
  readonly rank?: Tensor;
  /** u32 scalar, 0 at the first step. */
  readonly step?: Tensor;
}

/** What an aggregator may draw on beside gradient and state. */
export interface AggregateContext extends EncodeContext {
  /** Mesh axis over whose ranks the mean is taken. */
  readonly axis: string;
  /** To be passed to every collective. */
  readonly collective?: CollectiveOptions;
}
