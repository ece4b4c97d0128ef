import {
  cast,
  concat,
  elementCount,
  full,
  gather,
  reshape,
  scatterAdd,
  sum,
  swapDims,
  type Tensor,
} from "@skein/tensor-core";
import type { LayerUse } from "@skein/tensor-core/backend";
import type { Layer } from "./layer.ts";
import { patchesOf, tapsOf } from "./patches.ts";

/** Computes `x M`, or `x Mᵀ`, for a block-diagonal M. The result includes the padding columns: see `trim`. */
export interface LayerRows {
  /** Width of one row: number of inputs without the bias, or number of outputs. */
  readonly width: number;
  readonly count: number;
  /** Returns all rows, f32 [count, width], ordered by sample. Throws for rows that are table indices. */
  matrix(): Tensor;
  /** Returns the sum of all rows, f32 [width]. */
  total(): Tensor;
  /** Returns the sum of the rows per sample, f32 [samples, width]. */
  totalPerSample(samples: number): Tensor;
  /**
   * Returns the rows of selected samples.
   *
   * @param samples number of all samples.
   * @param chosen indices of the selected samples, i32 [n].
   */
  take(samples: number, chosen: Tensor): LayerRows;
}

const asF32 = (x: Tensor): Tensor => (x.dtype === "f32" ? x : cast(x, "f32"));

/** Returns rows that are stored as a tensor [count, width]. */
const plainRows = (rows: Tensor): LayerRows => {
  const [count, width] = rows.shape as [number, number];
  const bySample = (samples: number): Tensor => reshape(rows, [samples, count / samples, width]);
  return {
    width,
    count,
    matrix: () => asF32(rows),
    total: () => sum(asF32(rows), { dims: 0 }),
    totalPerSample: (samples) => (samples === count ? asF32(rows) : sum(asF32(bySample(samples)), { dims: 1 })),
    take: (samples, chosen) => plainRows(reshape(gather(bySample(samples), chosen), [-1, width])),
  };
};

/**
 * Returns the input rows of a convolution, which are image patches. A patch is created only if individual rows are
 * needed.
 */
const imageRows = (image: Tensor, use: LayerUse, kernel: readonly [number, number], count: number): LayerRows => {
  const width = kernel[0] * kernel[1] * image.shape[3]!;
  // Sums of patches are computed per tap and concatenated, without a tensor of all patches.
  const sums = (x: Tensor): Tensor =>
    concat(
      tapsOf(x, use.params, kernel).map((tap) => sum(tap, { dims: [1, 2] })),
      { dim: 1 },
    );
  return {
    width,
    count,
    matrix: () => reshape(patchesOf(asF32(image), use.params, kernel), [count, width]),
    total: () => reshape(sums(sum(asF32(image), { dims: 0, keepDims: true })), [width]),
    totalPerSample: () => sums(asF32(image)),
    take: (samples, chosen) =>
      imageRows(gather(image, chosen), use, kernel, (count / samples) * elementCount(chosen.shape)),
  };
};

/** Returns the input rows of an embedding: one-hot rows, stored as table indices. */
const tableRows = (numbers: Tensor, width: number): LayerRows => {
  const count = elementCount(numbers.shape);
  const bySample = (samples: number): Tensor => reshape(numbers, [samples, count / samples]);
  const counts = (flat: Tensor): Tensor => scatterAdd(full([width], 0), flat, full([elementCount(flat.shape)], 1));
  return {
    width,
    count,
    matrix: () => {
      throw new RangeError("rows of an embedding are counted, but never created");
    },
    total: () => counts(reshape(numbers, [count])),
    totalPerSample: () => {
      throw new RangeError("rows of an embedding are counted, but never created");
    },
    take: (samples, chosen) => tableRows(gather(bySample(samples), chosen), width),
  };
};

/**
 * Returns the rows that one use of a layer reads.
 *
 * @param input value of the layer's operand. @param output value of its result.
 */
export const inputRows = (layer: Layer, use: LayerUse, input: Tensor, output: Tensor): LayerRows => {
  switch (layer.kind) {
    case "linear": {
      const rowsFirst = use.operand === 1 ? use.params["transposeA"] !== true : use.params["transposeB"] === true;
      return plainRows(rowsFirst ? input : swapDims(input, -1, -2));
    }
    case "convolution":
      return imageRows(input, use, layer.kernel!, elementCount(output.shape.slice(0, 3)));
    case "embedding":
      return tableRows(input, layer.numInputs);
  }
};

/** Returns the gradients of the rows that one use of a layer computes. @param gradient gradient of the use's result. */
export const gradientRows = (layer: Layer, use: LayerUse, gradient: Tensor): LayerRows =>
  plainRows(
    layer.kind === "linear" && use.operand === 0
      ? swapDims(gradient, -1, -2)
      : reshape(gradient, [-1, layer.numOutputs]),
  );
