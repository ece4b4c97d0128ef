// Shapes: T tokens of this rank, D token width, E experts, C slots per expert, R = E·C slots in total.
import { arange, broadcastTo, full, matmul, reshape, type Tensor } from "@skein/tensor-core";
import type { Order } from "./order.ts";

/** Reshapes [T, E, C] to [T, R], with R = E·C. */
const flat = (x_TEC: Tensor): Tensor => reshape(x_TEC, [x_TEC.shape[0]!, -1]);

/** Computes the input of each slot as a weighted sum of all tokens. @returns f32 [R, D], ordered by expert. */
export const mixToSlots = (x_TD: Tensor, dispatch_TEC: Tensor): Tensor =>
  matmul(flat(dispatch_TEC), x_TD, { transposeA: true });

/** Computes the output of each token as a weighted sum of all slots. @returns f32 [T, D]. */
export const mixFromSlots = (y_RD: Tensor, combine_TEC: Tensor): Tensor => matmul(flat(combine_TEC), y_RD);

/**
 * Returns the slot assignment (order) for soft routing. Each expert slot is dispatched like a token with a single
 * choice of weight 1.
 *
 * @param positions_E position of each expert, i32.
 */
export const mixtureOrder = (positions_E: Tensor, slots: number): Order => {
  const numExperts = positions_E.shape[0]!;
  const ofSlots = (each: Tensor, shape: readonly number[]): Tensor =>
    reshape(broadcastTo(reshape(each, shape), [numExperts, slots]), [numExperts * slots, 1]);
  return {
    experts_TK: ofSlots(positions_E, [numExperts, 1]),
    slots_TK: ofSlots(arange(slots), [1, slots]),
    weights_TK: full([numExperts * slots, 1], 1),
    kept_E: full([numExperts], slots, "i32"),
    greatestLoad: full([], slots, "i32"),
  };
};
