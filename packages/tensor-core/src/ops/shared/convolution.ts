import { InvariantError, ShapeError } from "../../errors.ts";
import type { Params } from "../../graph/graph.ts";
import type { Cost } from "../../graph/operator.ts";
import type { DType } from "../../dtype.ts";
import { byteLength, elementCount, formatShape, formatSpec, type Shape, type TensorSpec } from "../../shape.ts";
import { type Sliding, slidingPositions } from "../../window.ts";
import { productDtype, type ProductParams } from "./product-dtype.ts";

/** Parameters of `conv2d` and its two gradient operators. */
export type ConvolutionParams = Params & Sliding & ProductParams & { readonly groups: number };

/** Computes the output shape of a convolution of `x` [N, H, W, C] with `w` [height, width, C / groups, O]. */
export const convolutionShape = (x: Shape, w: Shape, params: ConvolutionParams, op: string): number[] => {
  const [batch, height, width, channels] = x as [number, number, number, number];
  const [kernelHeight, kernelWidth, perGroup, outChannels] = w as [number, number, number, number];
  const { groups } = params;
  const both = `image ${formatShape(x)} and weight ${formatShape(w)}`;
  if (!Number.isInteger(groups) || groups < 1 || channels % groups !== 0 || outChannels % groups !== 0) {
    throw new ShapeError(
      op,
      `${both} do not split into ${groups} groups: groups must be a positive whole number that divides both the ${channels} input and the ${outChannels} output channels; choose another number of groups`,
    );
  }
  if (channels !== perGroup * groups) {
    throw new ShapeError(
      op,
      `${both} do not fit: with ${groups} group${groups === 1 ? "" : "s"} the image's ${channels} channels must equal ${groups} × the weight's ${perGroup}; an image is [N, H, W, channels], a weight [height, width, channels / groups, outputs]`,
    );
  }
  if (kernelHeight < 1 || kernelWidth < 1)
    throw new ShapeError(
      op,
      `${both} do not fit: a kernel has at least one row and one column; give the weight a size`,
    );
  return [batch, ...slidingPositions([height, width], [kernelHeight, kernelWidth], params, op), outChannels];
};

/** Returns the result dtype of a convolution, after checking that both operands have 4 dimensions. */
export const imagesDtype = (op: string, inputs: readonly TensorSpec[], params: ConvolutionParams): DType => {
  for (const input of inputs) {
    if (input.shape.length !== 4)
      throw new InvariantError(
        `${op} node with operands ${inputs.map(formatSpec).join(" and ")}, which must have 4 dimensions`,
      );
  }
  return productDtype(op, inputs, params);
};

/**
 * Computes the cost of a convolution or one of its gradients. A gradient has the same flops as the convolution,
 * including products with padding.
 */
export const convolutionCost = (
  w: Shape,
  y: Shape,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): Cost => ({
  flops: 2 * elementCount(y) * elementCount(w.slice(0, 3)),
  bytesRead: inputs.reduce((sum, input) => sum + byteLength(input), 0),
  bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
});

/**
 * Calls `visit` for each product of a convolution, with the element offsets in x, w and y. Kernel taps outside the
 * image are skipped. `conv2d` and its gradients are derivatives of the trilinear form `Σ x·w·y` with respect to y, x or
 * w.
 */
export const forEachProduct = (
  xShape: Shape,
  wShape: Shape,
  yShape: Shape,
  params: ConvolutionParams,
  visit: (x: number, w: number, y: number) => void,
): void => {
  const [batch, height, width, channels] = xShape as [number, number, number, number];
  const [kernelHeight, kernelWidth, perGroup, outChannels] = wShape as [number, number, number, number];
  const [, outHeight, outWidth] = yShape as [number, number, number, number];
  const { stride, padding, dilation, groups } = params;
  const outPerGroup = outChannels / groups;
  for (let y = 0; y < batch * outHeight * outWidth * outChannels; y++) {
    const out = y % outChannels;
    const column = Math.floor(y / outChannels) % outWidth;
    const row = Math.floor(y / (outChannels * outWidth)) % outHeight;
    const image = Math.floor(y / (outChannels * outWidth * outHeight));
    const firstChannel = Math.floor(out / outPerGroup) * perGroup;
    for (let r = 0; r < kernelHeight; r++) {
      const sourceRow = row * stride[0] - padding[0][0] + r * dilation[0];
      if (sourceRow < 0 || sourceRow >= height) continue;
      for (let c = 0; c < kernelWidth; c++) {
        const sourceColumn = column * stride[1] - padding[1][0] + c * dilation[1];
        if (sourceColumn < 0 || sourceColumn >= width) continue;
        const pixel = ((image * height + sourceRow) * width + sourceColumn) * channels + firstChannel;
        const tap = (r * kernelWidth + c) * perGroup;
        for (let q = 0; q < perGroup; q++) visit(pixel + q, (tap + q) * outChannels + out, y);
      }
    }
  }
};
