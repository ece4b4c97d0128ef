import { describe } from "../describe.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import type { DimOption } from "./elementwise.ts";
import { checkOptions } from "../options.ts";
import { elementCount, formatShape, requireShape, resolveDim, resolveDims, type Shape, sameShape } from "../shape.ts";

/**
 * Broadcasts `x` to `shape` (NumPy rule: aligned at the last dimension, sizes equal or 1).
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => broadcastTo(x, [2, 2]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2, 1, 2]
 * ```
 */
export const broadcastTo = (x: Tensor, shape: Shape): Tensor => {
  requireOperands("broadcastTo", [x]);
  requireShape("broadcastTo", shape);
  return sameShape(x.shape, shape) ? x : emitOne("broadcast-to", [x], { shape: [...shape] });
};

/**
 * Returns the dimensions of `to` along which a tensor of shape `from` is broadcast.
 *
 * @example
 * ```ts
 * console.log(broadcastDims([2], [3, 2])); // [0]
 * ```
 */
export const broadcastDims = (from: Shape, to: Shape): number[] => {
  const lead = to.length - from.length;
  return to.flatMap((size, dim) => (dim < lead || (from[dim - lead] === 1 && size !== 1) ? [dim] : []));
};

/**
 * Sums `x` over all dimensions along which a tensor of `shape` was broadcast to `x.shape`: the adjoint of
 * `broadcastTo`.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => sumTo(x, [2]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [4, 6]
 * ```
 */
export const sumTo = (x: Tensor, shape: Shape): Tensor => {
  requireOperands("sumTo", [x]);
  requireShape("sumTo", shape);
  const dims = broadcastDims(shape, x.shape);
  if (dims.length === 0) return reshape(x, shape);
  // Compute the sum in f32, because 16-bit floats are storage types.
  const wide = x.dtype === "f32" ? x : emitOne("cast", [x], { dtype: "f32" });
  const total = reshape(emitOne("sum", [wide], { dims }), shape);
  return x.dtype === "f32" ? total : emitOne("cast", [total], { dtype: x.dtype });
};

/**
 * Returns the elements of `x` with another shape. One size may be -1; it is computed from the other sizes.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => reshape(x, [2, 2]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4]));
 * console.log(result.shape); // [2, 2]
 * ```
 */
export const reshape = (x: Tensor, shape: Shape): Tensor => {
  requireOperands("reshape", [x]);
  requireShape("reshape", Array.isArray(shape) ? shape.filter((size) => size !== -1) : shape);
  const open = shape.filter((size) => size === -1).length;
  const known = elementCount(shape.filter((size) => size !== -1));
  const count = elementCount(x.shape);
  if (open > 1 || (open === 1 && (known === 0 || count % known !== 0))) {
    throw new ShapeError(
      "reshape",
      `${formatShape(x.shape)} has ${count} elements, which leaves no single size for -1 in ${formatShape(shape)}; write out the sizes`,
    );
  }
  const resolved = shape.map((size) => (size === -1 ? count / known : size));
  return sameShape(x.shape, resolved) ? x : emitOne("reshape", [x], { shape: resolved });
};

export interface FlattenOptions {
  /** First dimension to merge. Default: 0. */
  readonly first?: number;
  /** Last dimension to merge, inclusive. Default: the last dimension of `x`. */
  readonly last?: number;
}

/**
 * Merges dimensions `first` to `last` into one. Default: all dimensions.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => flatten(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [1, 2, 3, 4]
 * ```
 */
export const flatten = (x: Tensor, options: FlattenOptions = {}): Tensor => {
  const { first = 0, last = -1 } = checkOptions("flatten(x)", options, { first: true, last: true });
  requireOperands("flatten", [x]);
  if (x.rank === 0) return reshape(x, [1]);
  const from = resolveDim(first, x.rank, "flatten");
  const to = resolveDim(last, x.rank, "flatten");
  if (to < from)
    throw new ShapeError(
      "flatten",
      `first dimension ${first} comes after last dimension ${last} in ${formatShape(x.shape)}; swap them`,
    );
  return reshape(x, [...x.shape.slice(0, from), elementCount(x.shape.slice(from, to + 1)), ...x.shape.slice(to + 1)]);
};

/**
 * Removes dimensions of size 1: `dims`, or all dimensions of size 1 by default.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => squeeze(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2], [1, 2, 1]));
 * console.log(result.shape); // [2]
 * ```
 */
export const squeeze = (x: Tensor, options: { readonly dims?: number | readonly number[] } = {}): Tensor => {
  const { dims } = checkOptions("squeeze(x)", options, { dims: true });
  requireOperands("squeeze", [x]);
  const drop =
    dims === undefined
      ? x.shape.flatMap((size, dim) => (size === 1 ? [dim] : []))
      : resolveDims(dims, x.rank, "squeeze");
  for (const dim of drop) {
    if (x.shape[dim] !== 1)
      throw new ShapeError(
        "squeeze",
        `dimension ${dim} of ${formatShape(x.shape)} has size ${x.shape[dim]}, not 1; only dimensions of size 1 can be dropped`,
      );
  }
  return reshape(
    x,
    x.shape.filter((_, dim) => !drop.includes(dim)),
  );
};

/**
 * Inserts dimensions of size 1 at indices `dims` of the result.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => expandDims(x, { dims: 0 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.shape); // [1, 2]
 * ```
 */
export const expandDims = (x: Tensor, options: { readonly dims: number | readonly number[] }): Tensor => {
  const { dims } = checkOptions("expandDims(x)", options, { dims: true });
  if (dims === undefined)
    throw new ShapeError(
      "expandDims",
      "dims are missing; pass the indices of the new dimensions: expandDims(x, { dims: 0 })",
    );
  requireOperands("expandDims", [x]);
  const added = Array.isArray(dims) ? dims.length : 1;
  const insertedDims = resolveDims(dims, x.rank + added, "expandDims");
  const rest = [...x.shape];
  return reshape(
    x,
    Array.from({ length: x.rank + added }, (_, dim) => (insertedDims.includes(dim) ? 1 : rest.shift()!)),
  );
};

/**
 * Reorders dimensions: dimension d of the result is dimension `permutation[d]` of `x`. Without `permutation`, the order
 * of dimensions is reversed.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => transpose(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [1, 3, 2, 4]
 * ```
 */
export const transpose = (x: Tensor, permutation?: readonly number[]): Tensor => {
  requireOperands("transpose", [x]);
  if (permutation !== undefined && !Array.isArray(permutation))
    throw new ArgumentError(
      `transpose: its permutation is ${describe(permutation)}; pass the order of the dimensions as a list, such as [1, 0]`,
    );
  const order =
    permutation?.map((dim) => resolveDim(dim, x.rank, "transpose")) ?? x.shape.map((_, dim) => x.rank - 1 - dim);
  return order.length === x.rank && order.every((dim, i) => dim === i)
    ? x
    : emitOne("transpose", [x], { permutation: order });
};

/**
 * Swaps two dimensions.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => swapDims(x, 0, 1);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [1, 3, 2, 4]
 * ```
 */
export const swapDims = (x: Tensor, a: number, b: number): Tensor => {
  requireOperands("swapDims", [x]);
  const [first, second] = [resolveDim(a, x.rank, "swapDims"), resolveDim(b, x.rank, "swapDims")];
  return transpose(
    x,
    x.shape.map((_, dim) => (dim === first ? second : dim === second ? first : dim)),
  );
};

/**
 * Selects every `strides[d]`-th index from `starts[d]` (inclusive) to `ends[d]` (exclusive) along each dimension d.
 * Negative starts and ends count from the end. If a list has fewer entries than `x` has dimensions, the remaining
 * dimensions are not sliced.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => slice(x, [1], [3]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4]));
 * console.log(result.toNumbers()); // [2, 3]
 * ```
 */
export const slice = (
  x: Tensor,
  starts: readonly number[],
  ends: readonly number[] = [],
  strides: readonly number[] = [],
): Tensor => {
  requireOperands("slice", [x]);
  for (const [name, list] of Object.entries({ starts, ends, strides }))
    if (!Array.isArray(list) || !list.every(Number.isInteger))
      throw new ArgumentError(
        `slice: ${name} are ${describe(list)}; pass a list of whole numbers, one per dimension from the first on`,
      );
  if (starts.length > x.rank || ends.length > x.rank || strides.length > x.rank) {
    throw new ShapeError(
      "slice",
      `${starts.length} starts, ${ends.length} ends and ${strides.length} strides were given for ${formatShape(x.shape)}; pass at most one per dimension`,
    );
  }
  const fromEnd = (index: number, size: number): number => (index < 0 ? index + size : index);
  const from = x.shape.map((size, dim) => fromEnd(starts[dim] ?? 0, size));
  const to = x.shape.map((size, dim) => fromEnd(ends[dim] ?? size, size));
  const step = x.shape.map((_, dim) => strides[dim] ?? 1);
  const whole = x.shape.every((size, dim) => from[dim] === 0 && to[dim] === size && step[dim] === 1);
  return whole ? x : emitOne("slice", [x], { starts: from, ends: to, strides: step });
};

const requireList = (op: string, tensors: readonly Tensor[]): void => {
  if (!Array.isArray(tensors))
    throw new ArgumentError(`${op}: got ${describe(tensors)} instead of a list of tensors; write ${op}([a, b])`);
  requireOperands(op, tensors);
};

/**
 * Concatenates tensors along `dim` (default: 0).
 *
 * @example
 * ```ts
 * const apply = (x: Tensor, y: Tensor) => concat([x, y]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]), NdArray.from([3]));
 * console.log(result.toNumbers()); // [1, 2, 3]
 * ```
 */
export const concat = (tensors: readonly Tensor[], options: DimOption = {}): Tensor => {
  const { dim = 0 } = checkOptions("concat(tensors)", options, { dim: true });
  requireList("concat", tensors);
  const first = tensors[0];
  if (first === undefined) throw new ShapeError("concat", "no tensors were given; pass at least one");
  const along = resolveDim(dim, first.rank, "concat");
  return tensors.length === 1 ? first : emitOne("concat", tensors, { dim: along });
};

/**
 * Splits `x` along `dim` (default: 0) into `parts` equal parts, or into parts with the sizes in `parts`. `concat` is
 * the inverse.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => split(x, 2)[1]!;
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4]));
 * console.log(result.toNumbers()); // [3, 4]
 * ```
 */
export const split = (x: Tensor, parts: number | readonly number[], options: DimOption = {}): Tensor[] => {
  const { dim = 0 } = checkOptions("split(x, parts)", options, { dim: true });
  requireOperands("split", [x]);
  if (!Array.isArray(parts) && !(Number.isInteger(parts) && (parts as number) >= 0 && (parts as number) < 2 ** 32))
    throw new ArgumentError(
      `split: its parts are ${describe(parts)}; pass the number of parts, or a list of their sizes`,
    );
  const along = resolveDim(dim, x.rank, "split");
  const size = x.shape[along]!;
  const sizes = typeof parts === "number" ? Array.from({ length: parts }, () => size / parts) : parts;
  if (
    sizes.reduce((sum, part) => sum + part, 0) !== size ||
    !sizes.every((part) => Number.isInteger(part) && part >= 0)
  ) {
    throw new ShapeError(
      "split",
      `dimension ${along} of ${formatShape(x.shape)} has size ${size}, which cannot be split into [${sizes.join(", ")}]; the parts must be whole numbers that add up to ${size}`,
    );
  }
  let start = 0;
  return sizes.map((part) => {
    const starts = x.shape.map((_, i) => (i === along ? start : 0));
    start += part;
    return slice(
      x,
      starts,
      x.shape.map((whole, i) => (i === along ? start : whole)),
    );
  });
};

/**
 * Stacks tensors of equal shape along a new dimension `dim` (default: 0).
 *
 * @example
 * ```ts
 * const x = NdArray.from([1, 2]);
 * const y = NdArray.from([3, 4]);
 * const result = await evaluate((x: Tensor, y: Tensor) => stack([x, y]), referenceBackend())(x, y);
 * console.log(result.shape); // [2, 2]
 * ```
 */
export const stack = (tensors: readonly Tensor[], options: DimOption = {}): Tensor => {
  const { dim = 0 } = checkOptions("stack(tensors)", options, { dim: true });
  requireList("stack", tensors);
  const rank = (tensors[0]?.rank ?? 0) + 1;
  const along = resolveDim(dim, rank, "stack");
  return concat(
    tensors.map((tensor) => expandDims(tensor, { dims: along })),
    { dim: along },
  );
};

/**
 * Pads `x` with `value`: `widths[d]` is the number of entries added before and after along dimension d.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => pad(x, [[1, 2]]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [0, 1, 2, 0, 0]
 * ```
 */
export const pad = (x: Tensor, widths: readonly (readonly [number, number])[], value = 0): Tensor => {
  requireOperands("pad", [x]);
  if (!Array.isArray(widths) || !widths.every((pair) => Array.isArray(pair) && pair.length === 2))
    throw new ArgumentError(
      `pad: its widths are ${describe(widths)}; pass one [before, after] per dimension of ${formatShape(x.shape)}, such as [${x.shape.map(() => "[0, 1]").join(", ")}]`,
    );
  if (widths.length !== x.rank)
    throw new ShapeError(
      "pad",
      `${widths.length} pairs were given for ${formatShape(x.shape)}; pass one [before, after] per dimension`,
    );
  if (widths.every(([low, high]) => low === 0 && high === 0)) return x;
  return emitOne("pad", [x], {
    low: widths.map(([low]) => low),
    high: widths.map(([, high]) => high),
    interior: widths.map(() => 0),
    value,
  });
};

/**
 * Pads with zeros, including `interior[d]` zeros between adjacent entries along dimension d: the adjoint of a strided
 * `slice`.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => padInterior(x, [0], [0], [1]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3]));
 * console.log(result.toNumbers()); // [1, 0, 2, 0, 3]
 * ```
 */
export const padInterior = (
  x: Tensor,
  low: readonly number[],
  high: readonly number[],
  interior: readonly number[],
): Tensor => emitOne("pad", [x], { low, high, interior, value: 0 });
