// Shapes: e experts of this rank, S rows that they process, D token width.
import type { Tensor } from "@skein/tensor-core";

/** Computation of a rank's experts. Parameters of several experts are stacked along a new dimension 0. */
export interface Experts<Params = unknown> {
  /** Returns the initial parameters of one expert. */
  init(key: Tensor): Params;
  /**
   * Applies the experts to their rows.
   * @param params stacked parameters, [e, …].
   * @param rows_SD f32, ordered by expert. Rows after the rows of the last expert are ignored.
   * @param counts_e number of rows per expert, i32; may be 0, and may differ between runs.
   * @returns f32 [S, D].
   */
  apply(params: Params, rows_SD: Tensor, counts_e: Tensor): Tensor;
  /**
   * Hidden dimension of each parameter of an expert, by path. If all parameters are sharded along this dimension, with
   * the same hidden units, each shard returns a partial sum of the expert's output. So several ranks can share an
   * expert (tensor parallelism). Default: experts cannot be sharded.
   */
  readonly hiddenDims?: Readonly<Record<string, number>>;
}

export interface MlpExpertsOptions {
  /** D, width of a token. */
  readonly width: number;
  /** F, hidden width of each expert. */
  readonly hidden: number;
  /** Standard deviation of initial input matrices. Default: 0.02. */
  readonly deviation?: number;
  /** Standard deviation of initial output matrices. Use 0.02 / √(2·layers) in a deep network. Default: 0.02. */
  readonly outputDeviation?: number;
}
