import type { ComputeType } from "../hardware/hardware.ts";

/**
 * How a model is trained: all in f32 (`tf32`: products on tensor cores), or mixed, with weights and gradients of 16
 * bits and an f32 copy in the optimizer.
 */
export type Precision = "f32" | "tf32" | "mixed-f16" | "mixed-bf16";

/** Bytes of a value by what it is. */
export interface PrecisionBytes {
  /** What products multiply. */
  readonly type: ComputeType;
  readonly activation: number;
  readonly weight: number;
  readonly gradient: number;
  /** The f32 copy that the optimizer adds to; 0 where the weights are f32 themselves. */
  readonly master: number;
}

const plain = { activation: 4, weight: 4, gradient: 4, master: 0 };
const mixed = { activation: 2, weight: 2, gradient: 2, master: 4 };

/** Source of mixed precision: Micikevicius et al. 2017, arXiv 1710.03740. */
export const precisions: { readonly [precision in Precision]: PrecisionBytes } = {
  f32: { type: "f32", ...plain },
  tf32: { type: "tf32", ...plain },
  "mixed-f16": { type: "f16", ...mixed },
  "mixed-bf16": { type: "bf16", ...mixed },
};

export type OptimizerName = "adam" | "momentum" | "sgd";

/** What an optimizer keeps and does for each parameter that it trains. */
export interface OptimizerCost {
  /** f32 states, beside the master copy. */
  readonly states: number;
  readonly flops: number;
}

/** Flops: multiplications, additions, roots and divisions of an update, weight decay included. */
export const optimizers: { readonly [name in OptimizerName]: OptimizerCost } = {
  adam: { states: 2, flops: 14 },
  momentum: { states: 1, flops: 5 },
  sgd: { states: 0, flops: 3 },
};

/** Bytes of optimizer state for each trained parameter, the master copy included. */
export const stateBytes = (precision: Precision, optimizer: OptimizerName): number =>
  precisions[precision].master + 4 * optimizers[optimizer].states;
