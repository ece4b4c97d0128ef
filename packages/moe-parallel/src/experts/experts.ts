// Shapes: e experts of this rank, S rows that they see, D width of a token.
import type { Tensor } from "@skein/tensor-core";

/** What the experts of a rank compute. Parameters of several experts are stacked along a new dimension 0. */
export interface Experts<Params = unknown> {
  /** Parameters of one expert. */
  init(key: Tensor): Params;
  /**
   * @param params stacked, [e, …].
   * @param rows_SD f32; those of the first expert, then those of the second, …; rows behind the last one do not count.
   * @param counts_e i32, rows of each expert; may be 0, and differ from run to run.
   * @returns f32 [S, D].
   */
  apply(params: Params, rows_SD: Tensor, counts_e: Tensor): Tensor;
  /**
   * Of each parameter of one expert, by path: its dimension of hidden values. With parts of all of them along it, of
   * the same hidden values, an expert gives a summand of what it gives with wholes. Ranks may then share each expert
   * out. Default: experts are wholes.
   */
  readonly hiddenDims?: Readonly<Record<string, number>>;
}

export interface MlpExpertsOptions {
  /** D */
  readonly width: number;
  /** F, of each expert. */
  readonly hidden: number;
  /** Of the first values of the matrices that read tokens. Default: 0.02. */
  readonly deviation?: number;
  /** Of the first values of the matrix that writes them; 0.02 / √(2·layers) in a deep network. Default: 0.02. */
  readonly outputDeviation?: number;
}
