import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import { Tensor } from "../graph/tensor.ts";
import { requireShape, type Shape } from "../shape.ts";
import { constant } from "./elementwise.ts";
import { concat, reshape } from "./movement.ts";

/** Where a window begins: i32 [rank], or one number or i32 scalar per dimension. */
export type Starts = Tensor | readonly (Tensor | number)[];

const startsOf = (op: string, starts: Starts): Tensor => {
  if (starts instanceof Tensor) return starts;
  if (!Array.isArray(starts))
    throw new ArgumentError(
      `${op}: its starts are ${describe(starts)}; give an i32 tensor, or a list of one number or i32 scalar per dimension`,
    );
  requireOperands(op, starts, { numbers: true });
  if (starts.every((start) => typeof start === "number")) return constant(starts as number[], "i32", [starts.length]);
  return concat(starts.map((start) => (typeof start === "number" ? constant([start], "i32") : reshape(start, [1]))));
};

/**
 * The part of `x` of a fixed size that begins where `starts` say when the graph runs; `slice` is for those known
 * before.
 *
 * A start outside 0 … dim − size is moved to the nearest end of it, as in XLA: the result always lies inside of `x`.
 * The gradient for `x` is zero outside of the part.
 *
 * @param x any dtype. @param starts i32 [rank of x], or one number or i32 scalar per dimension: `[0, position]`.
 * @param sizes one per dimension, each from 0 to that of `x`.
 * Cost: each element of the result is read and written once.
 * @throws ShapeError where starts or sizes do not fit `x`.
 */
export const dynamicSlice = (x: Tensor, starts: Starts, sizes: Shape): Tensor => {
  requireOperands("dynamicSlice", [x]);
  requireShape("dynamicSlice", sizes);
  return emitOne("dynamic-slice", [x, startsOf("dynamicSlice", starts)], { sizes: [...sizes] });
};

/**
 * `x` with the part that begins at `starts` replaced by `update`; starts are clamped as those of `dynamicSlice`.
 *
 * Written in place where nobody else needs `x`: a cache that is donated to a compiled step and returned by it costs
 * only what is new in it.
 *
 * @param update dtype and rank of `x`, no dimension longer than that of `x`.
 * @throws ShapeError where the update or starts do not fit `x`.
 * @example const keys = dynamicUpdateSlice(cache, newKey, [0, 0, position, 0]);
 */
export const dynamicUpdateSlice = (x: Tensor, update: Tensor, starts: Starts): Tensor => {
  requireOperands("dynamicUpdateSlice", [x, update]);
  return emitOne("dynamic-update-slice", [x, update, startsOf("dynamicUpdateSlice", starts)], {});
};
