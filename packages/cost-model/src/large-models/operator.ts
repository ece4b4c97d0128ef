import type { ComputeType } from "../hardware/hardware.ts";
import type { Work } from "../hardware/roofline.ts";

/** Work with separate counts of bytes read and bytes written. */
export interface OperatorWork extends Work {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** One operator of a model, with its work on one rank in one pass over one batch. */
export interface Operator {
  readonly name: string;
  /** Operator name for the lookup of measured efficiencies, such as `matmul`. */
  readonly operator: string;
  /** Operand type of a matrix product; f32 for other operators. */
  readonly type: ComputeType;
  /** Number of trainable parameters. */
  readonly trainable: number;
  /** Number of frozen parameters. */
  readonly frozen: number;
  /** Bytes of all parameters of the operator in their storage types. */
  readonly weightBytes: number;
  readonly forward: OperatorWork;
  /** Kernels of the operator's backward pass: two for a product with trained weights. */
  readonly backward: readonly OperatorWork[];
  /**
   * Bytes saved for the operator's backward pass. A value read by two operators is counted for the first operator only.
   */
  readonly savedBytes: number;
  /** Part of `savedBytes` that selective recomputation of attention does not save, in bytes. */
  readonly remadeBytes: number;
  /** Whether selective recomputation of attention runs this operator again in the backward pass. */
  readonly remade: boolean;
  readonly outputBytes: number;
}

/** Operators that are reported in one table row, such as the query, key and value projections. */
export interface Module {
  readonly name: string;
  readonly operators: readonly Operator[];
}

/**
 * Part of a model that occurs `repeats` times in a row, such as a transformer layer, or the embedding with one repeat.
 */
export interface Part {
  readonly name: string;
  readonly repeats: number;
  /** Whether full recomputation saves only the input of this part, and recomputes all its other values. */
  readonly recomputable: boolean;
  readonly inputBytes: number;
  readonly modules: readonly Module[];
}

/** Parameters of one pass over a model. */
export interface PassSetting {
  /** Number of sequences, or number of images. */
  readonly batch: number;
  /** Number of tokens per sequence that go through the model in this pass. */
  readonly length: number;
  /** Number of tokens that the last token of this pass attends to, including the tokens of this pass. */
  readonly context: number;
  /** Operand type of matrix products. */
  readonly type: ComputeType;
  /** Bytes per activation value. */
  readonly valueBytes: number;
  /** Bytes per weight that is not quantized. */
  readonly weightBytes: number;
  readonly flashAttention: boolean;
  /** Number of ranks that share each layer. */
  readonly tensorParallel: number;
  /**
   * Whether the pass belongs to training and has a loss and a backward pass. If false, logits are computed for the last
   * token only.
   */
  readonly training: boolean;
  readonly quantized?: QuantizedType | undefined;
  readonly adapters?: Adapters | undefined;
}

/** Storage type of quantized layer matrices, with one f32 scale per 64 values. */
export type QuantizedType = "i8" | "i4";

/** Matrices of a layer that can have an adapter. */
export type Projection = "query" | "key" | "value" | "output" | "gate" | "up" | "down";

/**
 * Trained low-rank adapters next to frozen matrices: W + B·A with A of shape [rank, inputs]. With `lora-fa`, A is also
 * frozen, so A·x is saved instead of x.
 *
 * Source: Hu et al. 2021, arXiv 2106.09685 (LoRA); Zhang et al. 2023, arXiv 2308.03303 (LoRA-FA).
 */
export interface Adapters {
  readonly kind: "lora" | "lora-fa";
  readonly rank: number;
  readonly projections: readonly Projection[];
}

/**
 * Bytes per quantized value, including 1/64 of the four-byte scale that 64 values share. Source: Dettmers et al. 2023,
 * arXiv 2305.14314 (QLoRA).
 */
export const quantizedBytes: { readonly [type in QuantizedType]: number } = { i8: 1 + 4 / 64, i4: 0.5 + 4 / 64 };

export const work = (flops: number, bytesRead: number, bytesWritten: number): OperatorWork => ({
  flops,
  bytes: bytesRead + bytesWritten,
  bytesRead,
  bytesWritten,
});

const noWork = work(0, 0, 0);

/** Returns the sum of several amounts of work. */
export const totalWork = (works: readonly OperatorWork[]): OperatorWork =>
  works.reduce(
    (sum, w) => work(sum.flops + w.flops, sum.bytesRead + w.bytesRead, sum.bytesWritten + w.bytesWritten),
    noWork,
  );

/** Builds an operator, with defaults for properties that most operators do not need. */
export const operator = (
  name: string,
  kind: string,
  given: Partial<Omit<Operator, "name" | "operator">>,
): Operator => ({
  name,
  operator: kind,
  type: "f32",
  trainable: 0,
  frozen: 0,
  weightBytes: 0,
  forward: noWork,
  backward: [],
  savedBytes: 0,
  remadeBytes: 0,
  remade: false,
  outputBytes: 0,
  ...given,
});
