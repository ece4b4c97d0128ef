// Types of a problem. `values.ts` generates its numbers; `problem-files.ts` stores them in files.

/** Sizes of a GPT and of its batch. */
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

/**
 * Computation that every implementation runs, with its inputs. All implementations read the same files, so results are
 * comparable.
 */
export interface Problem {
  readonly name: string;
  readonly kind: "matmul" | "training-step";
  readonly learningRate: number;
  /**
   * Precision of matrix products. `f16`: operands and result are f16. `mixed-f16`: activations of a step are f16,
   * weights stay f32. Absent: f32.
   */
  readonly precision?: "f16" | "mixed-f16";
  /** Sizes of the language model. Absent: the problem is not a language model. */
  readonly gpt?: GptSizes;
  readonly tensors: readonly ProblemTensor[];
}
