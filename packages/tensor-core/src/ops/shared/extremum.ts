import type { DType } from "../../dtype.ts";
import { cast, divide, equal, multiply } from "../../functions/elementwise.ts";
import { sum } from "../../functions/reduce.ts";
import type { VjpContext } from "../../graph/operator.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { type ReductionParams, broadcastBack } from "./reduction.ts";

/** Returns the smallest value of an ordered dtype. */
export const least = (dtype: DType): number => (dtype === "f32" ? -Infinity : dtype === "i32" ? -(2 ** 31) : 0);

/** Returns the largest value of an ordered dtype. */
export const greatest = (dtype: DType): number =>
  ({ f32: Infinity, i32: 2 ** 31 - 1, u32: 2 ** 32 - 1, u8: 255, bool: 1 })[dtype as "f32"];

/**
 * Computes the gradient of a maximum or minimum: the gradient is divided equally among all elements equal to the
 * result, as in PyTorch's `amax`.
 */
export const shareAmongTies = ({
  inputs: [x],
  outputs: [result],
  cotangents: [g],
  params: { dims },
}: VjpContext<ReductionParams>): (Tensor | undefined)[] => {
  const winners = cast(equal(x!, broadcastBack(result!, x!.shape, dims)), "f32");
  return [multiply(winners, broadcastBack(divide(g!, sum(winners, { dims })), x!.shape, dims))];
};
