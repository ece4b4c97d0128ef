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

/** The rows that one use of a layer reads, or the gradients of those it gives: one per sample and position. */
export interface LayerRows {
  /** Of one row: inputs without that of a bias, or outputs. */
  readonly width: number;
  readonly count: number;
  /** f32 [count, width], samples first. Not of rows that are numbers of a table. */
  matrix(): Tensor;
  /** f32 [width]: all rows added up. */
  total(): Tensor;
  /** f32 [samples, width]: the rows of each sample added up. */
  totalPerSample(samples: number): Tensor;
  /** The rows of some samples. @param samples in the whole. @param chosen i32 [n] */
  take(samples: number, chosen: Tensor): LayerRows;
}

const asF32 = (x: Tensor): Tensor => (x.dtype === "f32" ? x : cast(x, "f32"));

/** Rows that lie in a tensor [count, width] already. */
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

/** What a convolution reads: patches of images, made only where rows are needed one by one. */
const imageRows = (image: Tensor, use: LayerUse, kernel: readonly [number, number], count: number): LayerRows => {
  const width = kernel[0] * kernel[1] * image.shape[3]!;
  // Sums of patches are the sums of each tap, side by side: nothing of the size of all patches is written.
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

/** What an embedding reads: rows of zeros with a one where the number of the table's row says. */
const tableRows = (numbers: Tensor, width: number): LayerRows => {
  const count = elementCount(numbers.shape);
  const bySample = (samples: number): Tensor => reshape(numbers, [samples, count / samples]);
  const counts = (flat: Tensor): Tensor => scatterAdd(full([width], 0), flat, full([elementCount(flat.shape)], 1));
  return {
    width,
    count,
    matrix: () => {
      throw new RangeError("the rows of an embedding are counted, never written");
    },
    total: () => counts(reshape(numbers, [count])),
    totalPerSample: () => {
      throw new RangeError("the rows of an embedding are counted, never written");
    },
    take: (samples, chosen) => tableRows(gather(bySample(samples), chosen), width),
  };
};

/** The rows that a use reads. @param input @param output values of the layer's operand and result. */
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

/** The gradients of the rows that a use gives. @param gradient of its result. */
export const gradientRows = (layer: Layer, use: LayerUse, gradient: Tensor): LayerRows =>
  plainRows(
    layer.kind === "linear" && use.operand === 0
      ? swapDims(gradient, -1, -2)
      : reshape(gradient, [-1, layer.numOutputs]),
  );
