import { bytesPerElement, type DType } from "@skein/tensor-core";
import { coordinates } from "./unit.ts";
import { joinDims, type View } from "./view-copy.ts";

interface BatchDim {
  readonly size: number;
  readonly inputStride: number;
  readonly outputStride: number;
}

/**
 * Transposition of two dimensions of a view. All other dimensions are batch dimensions. Sizes and strides are in
 * elements.
 */
export interface Transposition {
  /** Dimension that is innermost in the output: its size, and its input stride in elements. */
  readonly rows: { readonly size: number; readonly inputStride: number };
  /** Dimension that is innermost in the input: its size, and its output stride in elements. */
  readonly columns: { readonly size: number; readonly outputStride: number };
  readonly batch: readonly BatchDim[];
  readonly offset: number;
}

/** Minimum length of both sides of a transposed matrix. For shorter sides, caches are as fast as tiles. */
const minSide = 4;

/**
 * Returns the view as a transposition of matrices, or undefined if the view is not a transposition, or if tiles would
 * not be faster.
 */
export const transpositionOf = (view: View, dtype: DType): Transposition | undefined => {
  const dims = joinDims(view.dims);
  const inner = dims.at(-1)!;
  const at = dims.findIndex(({ stride }) => stride === 1);
  if (inner.stride <= 1 || at === -1) return undefined;
  const outputStrides = dims.map((_, dim) => dims.slice(dim + 1).reduce((product, { size }) => product * size, 1));
  const column = dims[at]!;
  if (Math.min(inner.size, column.size) < minSide) return undefined;
  const perWord = 4 / bytesPerElement[dtype];
  // Complete words are read and written, so rows of the input and of the output must start at word boundaries.
  const others = dims.filter((dim) => dim !== column);
  if (view.offset % perWord !== 0 || inner.size % perWord !== 0 || others.some(({ stride }) => stride % perWord !== 0))
    return undefined;
  return {
    rows: { size: inner.size, inputStride: inner.stride },
    columns: { size: column.size, outputStride: outputStrides[at]! },
    batch: dims.flatMap((dim, i) =>
      dim === inner || dim === column
        ? []
        : [{ size: dim.size, inputStride: dim.stride, outputStride: outputStrides[i]! }],
    ),
    offset: view.offset,
  };
};

/** Returns WGSL that decomposes the index of a matrix in the batch: `b<d>` for each batch dimension. */
export const batchCode = (batch: readonly BatchDim[]): string =>
  coordinates(
    "matrix",
    batch.map(({ size }) => size),
    "b",
  );
