import { bytesPerElement, type DType, dtypes, integerRange } from "./dtype.ts";
import { ShapeError } from "./errors.ts";
import { excerpt } from "./excerpt.ts";

/** Static shape, outermost dimension first; `[]` is a scalar. The layout is always dense row-major. */
export type Shape = readonly number[];

/** Dtype and shape of a tensor, known at compile time. */
export interface TensorSpec {
  readonly dtype: DType;
  readonly shape: Shape;
}

/**
 * Returns the number of elements of a shape; 1 for `[]`.
 *
 * @example
 * ```ts
 * console.log(elementCount([2, 3])); // 6
 * ```
 */
export const elementCount = (shape: Shape): number => shape.reduce((product, size) => product * size, 1);

/**
 * Returns the number of bytes of a dense tensor.
 *
 * @example
 * ```ts
 * console.log(byteLength({ dtype: "f16", shape: [2, 3] })); // 12
 * ```
 */
export const byteLength = (spec: TensorSpec): number => elementCount(spec.shape) * bytesPerElement[spec.dtype];

/**
 * Whether two shapes have the same rank and the same sizes.
 *
 * @example
 * ```ts
 * console.log(sameShape([2, 3], [2, 3])); // true
 * ```
 */
export const sameShape = (a: Shape, b: Shape): boolean =>
  a.length === b.length && a.every((size, dim) => size === b[dim]);

/** Whether two specs have equal dtypes and shapes. */
export const sameSpec = (a: TensorSpec, b: TensorSpec): boolean => a.dtype === b.dtype && sameShape(a.shape, b.shape);

/**
 * Formats a shape for errors and printed graphs: `[2, 3]`.
 *
 * @example
 * ```ts
 * console.log(formatShape([2, 3])); // [2, 3]
 * ```
 */
export const formatShape = (shape: Shape): string => `[${shape.join(", ")}]`;

/**
 * Formats a spec: `f32[64, 10]`.
 *
 * @example
 * ```ts
 * console.log(formatSpec({ dtype: "f32", shape: [2, 3] })); // f32[2, 3]
 * ```
 */
export const formatSpec = (spec: TensorSpec): string => `${spec.dtype}${formatShape(spec.shape)}`;

/** Throws ShapeError unless all sizes of a shape are non-negative integers. */
export const requireShape = (op: string, shape: Shape): void => {
  if (!Array.isArray(shape))
    throw new ShapeError(op, `got ${excerpt(shape)} instead of a shape; write a list of sizes, such as [2, 3]`);
  for (const [dim, size] of shape.entries())
    if (!Number.isSafeInteger(size) || size < 0)
      throw new ShapeError(
        op,
        `shape ${excerpt(shape)} has the size ${excerpt(size)} in dimension ${dim}; sizes are whole numbers from 0, choose another`,
      );
};

/** Throws ShapeError if a dtype is unknown. */
export const requireDType = (op: string, dtype: DType): void => {
  if (!dtypes.includes(dtype))
    throw new ShapeError(op, `there is no dtype ${excerpt(dtype)}; use one of ${dtypes.join(", ")}`);
};

/**
 * Computes the row-major strides of a shape, in elements.
 *
 * @example
 * ```ts
 * console.log(rowMajorStrides([2, 3, 4])); // [12, 4, 1]
 * ```
 */
export const rowMajorStrides = (shape: Shape): number[] => {
  const strides = new Array<number>(shape.length).fill(1);
  for (let dim = shape.length - 2; dim >= 0; dim--) strides[dim] = strides[dim + 1]! * shape[dim + 1]!;
  return strides;
};

/** Resolves a dimension number to 0 ≤ dim < rank. Negative numbers count from the end; -1 is the last dimension. */
export const resolveDim = (dim: number, rank: number, op: string): number => {
  const resolved = dim < 0 ? dim + rank : dim;
  if (!Number.isInteger(dim) || resolved < 0 || resolved >= rank) {
    throw new ShapeError(
      op,
      `dimension ${dim} does not exist in a tensor of rank ${rank}; use ${-rank} to ${rank - 1}`,
    );
  }
  return resolved;
};

/** Resolves, checks and sorts dimension numbers. If `dims` is absent, returns all dimensions. */
export const resolveDims = (dims: number | readonly number[] | undefined, rank: number, op: string): number[] => {
  if (dims === undefined) return Array.from({ length: rank }, (_, dim) => dim);
  if (typeof dims !== "number" && !Array.isArray(dims))
    throw new ShapeError(op, `dims are ${excerpt(dims)}; pass a dimension, such as 1, or a list of dimensions`);
  const resolved = (typeof dims === "number" ? [dims] : dims)
    .map((dim) => resolveDim(dim, rank, op))
    .sort((a, b) => a - b);
  resolved.forEach((dim, i) => {
    if (i > 0 && dim === resolved[i - 1])
      throw new ShapeError(op, `dimension ${dim} is named twice; name each dimension once`);
  });
  return resolved;
};

/** Returns the broadcast shape of two operands (NumPy rule: aligned at the last dimension; sizes are equal or 1). */
export const broadcastShapes = (a: Shape, b: Shape, op: string): number[] => {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, dim) => {
    const sizeA = a[dim - (rank - a.length)] ?? 1;
    const sizeB = b[dim - (rank - b.length)] ?? 1;
    if (sizeA !== sizeB && sizeA !== 1 && sizeB !== 1) {
      throw new ShapeError(
        op,
        `${formatShape(a)} and ${formatShape(b)} do not fit: aligned at the last dimension, sizes must be equal or 1, here ${sizeA} meets ${sizeB}; reshape or transpose one of them`,
      );
    }
    return sizeA === 1 ? sizeB : sizeA;
  });
};

/**
 * Throws ShapeError if an integer dtype cannot represent a number, because the conversion would silently change the
 * number. Floats are rounded.
 */
export const requireNumberOf = (op: string, value: number, dtype: DType): void => {
  const range = integerRange[dtype];
  if (range === undefined || (Number.isInteger(value) && value >= range[0] && value <= range[1])) return;
  throw new ShapeError(
    op,
    `${value} cannot be represented as ${dtype}, which holds the whole numbers from ${range[0]} to ${range[1]}; cast the tensor to f32, or use a whole number`,
  );
};
