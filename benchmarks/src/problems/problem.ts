// The shape of a problem; its numbers are made in `values.ts` and kept in files by `problem-files.ts`.

/** Shape of a GPT and of its batch. */
export interface GptSizes {
  readonly batch: number;
  readonly positions: number;
  readonly vocabulary: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
}

export interface ProblemTensor {
  readonly name: string;
  readonly dtype: "f32" | "i32";
  readonly shape: readonly number[];
}

/** What every contestant computes, and from which numbers: all read the same files, so results are comparable. */
export interface Problem {
  readonly name: string;
  readonly kind: "matmul" | "training-step";
  readonly learningRate: number;
  /**
   * What products compute in. `f16`: operands and result of a product; `mixed-f16`: activations of a step, weights stay
   * f32. Default: f32.
   */
  readonly precision?: "f16" | "mixed-f16";
  /** Sizes of a language model. */
  readonly gpt?: GptSizes;
  readonly tensors: readonly ProblemTensor[];
}
