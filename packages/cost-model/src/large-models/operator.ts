import type { ComputeType } from "../hardware/hardware.ts";
import type { Work } from "../hardware/roofline.ts";

/** Work with its bytes apart. */
export interface OperatorWork extends Work {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** One operator at one place of a model: what a rank does for it in one pass over one batch. */
export interface Operator {
  readonly name: string;
  /** What is computed, as efficiencies are measured by. */
  readonly operator: string;
  /** What its operands are multiplied as; f32 for what is no product. */
  readonly type: ComputeType;
  /** Trained ones among its parameters, and the others. */
  readonly trainable: number;
  readonly frozen: number;
  /** Bytes of all its parameters as they lie in memory. */
  readonly weightBytes: number;
  readonly forward: OperatorWork;
  /** Kernels of its backward pass: two for a product whose weights are trained. */
  readonly backward: readonly OperatorWork[];
  /** What it keeps for its backward pass. What two operators read is kept by the first. */
  readonly savedBytes: number;
  /** Of `savedBytes`, what recomputation of the attention alone makes anew. */
  readonly remadeBytes: number;
  /** Whether recomputation of the attention alone runs it again. */
  readonly remade: boolean;
  readonly outputBytes: number;
}

/** Operators that have one name in a table, such as query, key and value. */
export interface Module {
  readonly name: string;
  readonly operators: readonly Operator[];
}

/** A piece of a model that comes `repeats` times in a row: all its layers, or the embedding. */
export interface Part {
  readonly name: string;
  readonly repeats: number;
  /** Whether full recomputation keeps its input alone. */
  readonly recomputable: boolean;
  readonly inputBytes: number;
  readonly modules: readonly Module[];
}

/** What one pass over a model depends on. */
export interface PassSetting {
  /** Sequences, or images. */
  readonly batch: number;
  /** Tokens of each sequence that go through the model, and those that they look back on, themselves included. */
  readonly length: number;
  readonly context: number;
  /** What products multiply. */
  readonly type: ComputeType;
  /** Of an activation, and of a weight that is not quantized. */
  readonly valueBytes: number;
  readonly weightBytes: number;
  readonly flashAttention: boolean;
  /** Ranks that share each layer. */
  readonly tensorParallel: number;
  /** With a loss and a backward pass; otherwise logits of the last token only. */
  readonly training: boolean;
  readonly quantized?: QuantizedType | undefined;
  readonly adapters?: Adapters | undefined;
}

/** What the matrices of the layers are stored as, beside one f32 scale for each 64 of them. */
export type QuantizedType = "i8" | "i4";

/** Matrices of a layer that can have an adapter. */
export type Projection = "query" | "key" | "value" | "output" | "gate" | "up" | "down";

/**
 * Trained products of low rank beside frozen matrices: W + B·A with A of [rank, inputs]. In `lora-fa` A is frozen, too,
 * so that only A·x is kept, not x.
 *
 * Source: Hu et al. 2021, arXiv 2106.09685 (LoRA); Zhang et al. 2023, arXiv 2308.03303 (LoRA-FA).
 */
export interface Adapters {
  readonly kind: "lora" | "lora-fa";
  readonly rank: number;
  readonly projections: readonly Projection[];
}

/**
 * Bytes of a quantized value with its part of a scale: 64 values share four bytes. Source: Dettmers et al. 2023, arXiv
 * 2305.14314 (QLoRA).
 */
export const quantizedBytes: { readonly [type in QuantizedType]: number } = { i8: 1 + 4 / 64, i4: 0.5 + 4 / 64 };

export const work = (flops: number, bytesRead: number, bytesWritten: number): OperatorWork => ({
  flops,
  bytes: bytesRead + bytesWritten,
  bytesRead,
  bytesWritten,
});

const noWork = work(0, 0, 0);

/** Add up works. */
export const totalWork = (works: readonly OperatorWork[]): OperatorWork =>
  works.reduce(
    (sum, w) => work(sum.flops + w.flops, sum.bytesRead + w.bytesRead, sum.bytesWritten + w.bytesWritten),
    noWork,
  );

/** Fill in what most operators do not have. */
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
