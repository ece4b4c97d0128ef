// Shapes: e experts of this rank, S rows that they process, D width of a token.
import type { Tensor } from "@skein/tensor-core";

/** Computation of the experts of a rank. Parameters of several experts are stacked along a new dimension 0. */
export interface Experts<Params = unknown> {
  /** Returns the initial parameters of one expert. */
  init(key: Tensor): Params;
  /**
   * Apply the experts to their rows.
   * @param params stacked parameters, [e, …].
   * @param rows_SD f32, ordered by expert. Rows after the last expert's are ignored.
   * @param counts_e number of rows of each expert, i32; may be 0, and may differ between runs.
   * @returns f32 [S, D].
   */
  apply(params: Params, rows_SD: Tensor, counts_e: Tensor): Tensor;
  /**
   * Hidden dimension of each parameter of one expert, by path. With shards of all parameters along this dimension, for
   * the same hidden units, an expert returns a partial sum of its full output. So ranks can shard each expert (tensor
   * parallelism). Default: experts cannot be sharded.
   */
  readonly hiddenDims?: Readonly<Record<string, number>>;
}

export interface MlpExpertsOptions {
  /** D, width of a token. */
  readonly width: number;
  /** F, hidden width of each expert. */
  readonly hidden: number;
  /** Standard deviation of the initial input matrices. Default: 0.02. */
  readonly deviation?: number;
  /** Standard deviation of the initial output matrix; use 0.02 / √(2·layers) in a deep network. Default: 0.02. */
  readonly outputDeviation?: number;
}
