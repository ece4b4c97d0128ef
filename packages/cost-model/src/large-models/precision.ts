import type { ComputeType } from "../hardware/hardware.ts";

/**
 * Training precision. f32: f32 for all values. tf32: f32 values, with matrix products on tensor cores. mixed: 16-bit
 * weights and gradients, and an f32 copy of the weights in the optimizer.
 */
export type Precision = "f32" | "tf32" | "mixed-f16" | "mixed-bf16";

/** Bytes per value, by role of the value. */
export interface PrecisionBytes {
  /** Operand type of matrix products. */
  readonly type: ComputeType;
  readonly activation: number;
  readonly weight: number;
  readonly gradient: number;
  /** Bytes of the optimizer's f32 copy of a weight; 0 if weights are f32. */
  readonly master: number;
}

const plain = { activation: 4, weight: 4, gradient: 4, master: 0 };
const mixed = { activation: 2, weight: 2, gradient: 2, master: 4 };

/**
 * Bytes per value for each training precision. Source of mixed precision: Micikevicius et al. 2017, arXiv 1710.03740.
 */
export const precisions: { readonly [precision in Precision]: PrecisionBytes } = {
  f32: { type: "f32", ...plain },
  tf32: { type: "tf32", ...plain },
  "mixed-f16": { type: "f16", ...mixed },
  "mixed-bf16": { type: "bf16", ...mixed },
};

export type OptimizerName = "adam" | "momentum" | "sgd";

/** State size and work of an optimizer per trained parameter. */
export interface OptimizerCost {
  /** Number of f32 state values, not including the f32 copy of the weight. */
  readonly states: number;
  readonly flops: number;
}

/**
 * Costs of optimizers per parameter. Flops are the multiplications, additions, roots and divisions of an update,
 * including weight decay.
 */
export const optimizers: { readonly [name in OptimizerName]: OptimizerCost } = {
  adam: { states: 2, flops: 14 },
  momentum: { states: 1, flops: 5 },
  sgd: { states: 0, flops: 3 },
};

/** Returns the bytes of optimizer state per trained parameter, including the f32 copy of the weight. */
export const stateBytes = (precision: Precision, optimizer: OptimizerName): number =>
  precisions[precision].master + 4 * optimizers[optimizer].states;
