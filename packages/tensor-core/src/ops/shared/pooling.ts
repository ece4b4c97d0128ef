import { InvariantError, ShapeError } from "../../errors.ts";
import type { Params } from "../../graph/graph.ts";
import type { Cost } from "../../graph/operator.ts";
import { byteLength, elementCount, formatShape, formatSpec, type Shape, type TensorSpec } from "../../shape.ts";
import { type Pair, type Sliding, slidingPositions } from "../../window.ts";

/** Parameters of the pooling operators; dilation is always 1. */
export type PoolingParams = Params & Sliding & { readonly window: Pair };

/** Computes the output shape of pooling `x` [N, H, W, C]. */
export const poolingShape = (x: TensorSpec, params: PoolingParams, op: string): number[] => {
  if (x.dtype !== "f32") throw new ShapeError(op, `operand ${formatSpec(x)} must be f32; cast it first`);
  if (x.shape.length !== 4)
    throw new InvariantError(`${op} node with operand ${formatSpec(x)}, which must have 4 dimensions`);
  const [batch, height, width, channels] = x.shape as [number, number, number, number];
  if (height === 0 || width === 0)
    throw new ShapeError(op, `images ${formatShape(x.shape)} have no pixels; pool images of at least 1×1`);
  return [batch, ...slidingPositions([height, width], params.window, params, op), channels];
};

/** Computes the cost of pooling: one flop per pixel of each window. */
export const poolingCost = (
  y: Shape,
  window: Pair,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): Cost => ({
  flops: elementCount(y) * window[0] * window[1],
  bytesRead: inputs.reduce((sum, input) => sum + byteLength(input), 0),
  bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
});

/** Calls `visit` for each output, with the offsets of the pixels in its window, in row-major order. */
export const forEachWindow = (
  x: Shape,
  y: Shape,
  { window, stride, padding }: PoolingParams,
  visit: (y: number, pixels: readonly number[]) => void,
): void => {
  const [, height, width, channels] = x as [number, number, number, number];
  const [, outHeight, outWidth] = y as [number, number, number, number];
  for (let at = 0; at < elementCount(y); at++) {
    const channel = at % channels;
    const column = (Math.floor(at / channels) % outWidth) * stride[1] - padding[1][0];
    const row = (Math.floor(at / (channels * outWidth)) % outHeight) * stride[0] - padding[0][0];
    const image = Math.floor(at / (channels * outWidth * outHeight));
    const pixels: number[] = [];
    for (let r = Math.max(row, 0); r < Math.min(row + window[0], height); r++) {
      for (let c = Math.max(column, 0); c < Math.min(column + window[1], width); c++) {
        pixels.push(((image * height + r) * width + c) * channels + channel);
      }
    }
    visit(at, pixels);
  }
};

/** Returns the offset of the maximum; the first offset if several are equal. NaN is treated as the maximum. */
export const firstMaximum = (data: Float64Array, pixels: readonly number[]): number =>
  pixels.reduce((best, at) =>
    data[at]! > data[best]! || (Number.isNaN(data[at]!) && !Number.isNaN(data[best]!)) ? at : best,
  );
