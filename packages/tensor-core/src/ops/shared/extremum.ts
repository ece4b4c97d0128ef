import type { DType } from "../../dtype.ts";
import { cast, divide, equal, multiply } from "../../functions/elementwise.ts";
import { sum } from "../../functions/reduce.ts";
import type { VjpContext } from "../../graph/operator.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { type ReductionParams, broadcastBack } from "./reduction.ts";

/** Smallest value of each ordered dtype. */
export const least = (dtype: DType): number => (dtype === "f32" ? -Infinity : dtype === "i32" ? -(2 ** 31) : 0);

/** Largest value of each ordered dtype. */
export const greatest = (dtype: DType): number =>
  ({ f32: Infinity, i32: 2 ** 31 - 1, u32: 2 ** 32 - 1, u8: 255, bool: 1 })[dtype as "f32"];

/**
 * Gradient of a maximum or minimum: all elements equal to the result share the gradient equally, as in PyTorch's
 * `amax`.
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
