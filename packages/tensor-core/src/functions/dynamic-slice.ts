import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import { Tensor } from "../graph/tensor.ts";
import { requireShape, type Shape } from "../shape.ts";
import { constant } from "./elementwise.ts";
import { concat, reshape } from "./movement.ts";

/** Start indices of a slice: i32 [rank], or a number or i32 scalar per dimension. */
export type Starts = Tensor | readonly (Tensor | number)[];

const startsOf = (op: string, starts: Starts): Tensor => {
  if (starts instanceof Tensor) return starts;
  if (!Array.isArray(starts))
    throw new ArgumentError(
      `${op}: its starts are ${describe(starts)}; pass an i32 tensor, or a list with a number or i32 scalar per dimension`,
    );
  requireOperands(op, starts, { numbers: true });
  if (starts.every((start) => typeof start === "number")) return constant(starts as number[], "i32", [starts.length]);
  return concat(starts.map((start) => (typeof start === "number" ? constant([start], "i32") : reshape(start, [1]))));
};

/**
 * Returns a slice of fixed size whose start indices are computed at run time. For constant starts, use `slice`.
 *
 * A start outside 0 … dim − size is clamped to that range, as in XLA: the slice is always inside `x`. The gradient of
 * `x` is zero outside the slice.
 *
 * @param x any dtype. @param starts i32 [rank of x], or a number or i32 scalar per dimension: `[0, position]`.
 * @param sizes Size of the slice along each dimension, from 0 to the size of `x`.
 * Cost: each element of the result is read and written once.
 * @throws ShapeError if starts or sizes do not match `x`.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2, 3, 4]);
 * const at = NdArray.from([1], [], "i32");
 * const apply = (x: Tensor, at: Tensor) => dynamicSlice(x, [at], [2]);
 * const result = await evaluate(apply, referenceBackend())(x, at);
 * console.log(result.toNumbers()); // [2, 3]
 * ```
 */
export const dynamicSlice = (x: Tensor, starts: Starts, sizes: Shape): Tensor => {
  requireOperands("dynamicSlice", [x]);
  requireShape("dynamicSlice", sizes);
  return emitOne("dynamic-slice", [x, startsOf("dynamicSlice", starts)], { sizes: [...sizes] });
};

/**
 * Returns `x` with the slice at `starts` replaced by `update`. Starts are clamped as in `dynamicSlice`.
 *
 * The update is in place if `x` is not needed later. For example, if a key-value cache is donated to a compiled step
 * and returned from the step, the only cost is writing `update`.
 *
 * @param update Tensor with the dtype and number of dimensions of `x`; no dimension is larger than in `x`.
 * @throws ShapeError if the update or starts do not match `x`.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2, 3, 4]);
 * const update = NdArray.from([9]);
 * const apply = (x: Tensor, update: Tensor) => dynamicUpdateSlice(x, update, [1]);
 * const result = await evaluate(apply, referenceBackend())(x, update);
 * console.log(result.toNumbers()); // [1, 9, 3, 4]
 * ```
 */
export const dynamicUpdateSlice = (x: Tensor, update: Tensor, starts: Starts): Tensor => {
  requireOperands("dynamicUpdateSlice", [x, update]);
  return emitOne("dynamic-update-slice", [x, update, startsOf("dynamicUpdateSlice", starts)], {});
};
