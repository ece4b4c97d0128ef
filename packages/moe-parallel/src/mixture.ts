// Shapes: T tokens of this rank, D width of a token, E experts, C slots of an expert, R = E·C rows.
import { gather, matmul, reshape, type Tensor } from "@skein/tensor-core";

/** Experts in the order of their places: [T, E, C] to [T, R]. */
const byPlaces = (x_TEC: Tensor, byPlace_E: Tensor): Tensor =>
  reshape(gather(x_TEC, byPlace_E, { dim: 1 }), [x_TEC.shape[0]!, -1]);

/** Each row is a weighted sum of all tokens. @param byPlace_E i32, expert of each place. @returns f32 [R, D]. */
export const mixToRows = (x_TD: Tensor, dispatch_TEC: Tensor, byPlace_E: Tensor): Tensor =>
  matmul(byPlaces(dispatch_TEC, byPlace_E), x_TD, { transposeA: true });

/** Each token is a weighted sum of all rows. @returns f32 [T, D]. */
export const mixFromRows = (rows_RD: Tensor, combine_TEC: Tensor, byPlace_E: Tensor): Tensor =>
  matmul(byPlaces(combine_TEC, byPlace_E), rows_RD);
