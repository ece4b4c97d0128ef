// Shapes: T tokens of this rank, D width of a token, E experts, C slots of an expert, R = E·C slots of all.
import { arange, broadcastTo, full, matmul, reshape, type Tensor } from "@skein/tensor-core";
import type { Order } from "./order.ts";

/** [T, E, C] to [T, R]. */
const flat = (x_TEC: Tensor): Tensor => reshape(x_TEC, [x_TEC.shape[0]!, -1]);

/** Each slot gets a weighted sum of all tokens. @returns f32 [R, D], the slots of the first expert, of the second, … */
export const mixToSlots = (x_TD: Tensor, dispatch_TEC: Tensor): Tensor =>
  matmul(flat(dispatch_TEC), x_TD, { transposeA: true });

/** Each token is a weighted sum of all slots. @returns f32 [T, D]. */
export const mixFromSlots = (y_RD: Tensor, combine_TEC: Tensor): Tensor => matmul(flat(combine_TEC), y_RD);

/** What stands in a slot travels like a token with one choice, whose output counts as it is. @param places_E i32. */
export const mixtureOrder = (places_E: Tensor, slots: number): Order => {
  const numExperts = places_E.shape[0]!;
  const ofSlots = (each: Tensor, shape: readonly number[]): Tensor =>
    reshape(broadcastTo(reshape(each, shape), [numExperts, slots]), [numExperts * slots, 1]);
  return {
    experts_TK: ofSlots(places_E, [numExperts, 1]),
    slots_TK: ofSlots(arange(slots), [1, slots]),
    weights_TK: full([numExperts * slots, 1], 1),
    kept_E: full([numExperts], slots, "i32"),
    greatestLoad: full([], slots, "i32"),
  };
};
