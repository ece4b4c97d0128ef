import { concat, pad, slice, type Tensor } from "@skein/tensor-core";
import type { Params } from "@skein/tensor-core/backend";

type Pair = readonly [number, number];

/**
 * Returns the pixels under each tap of a convolution kernel: strided slices [N, H', W', C] of the padded image, in the
 * row-major order of the taps.
 */
export const tapsOf = (image: Tensor, params: Params, kernel: Pair): Tensor[] => {
  const { stride, padding, dilation } = params as unknown as {
    readonly stride: Pair;
    readonly padding: readonly [Pair, Pair];
    readonly dilation: Pair;
  };
  const [rows, columns] = padding;
  const isPadded = [...rows, ...columns].some((amount) => amount > 0);
  const padded = isPadded ? pad(image, [[0, 0], rows, columns, [0, 0]]) : image;
  const positions = ([1, 2] as const).map(
    (dim, i) => Math.floor((padded.shape[dim]! - (kernel[i]! - 1) * dilation[i]! - 1) / stride[i]!) + 1,
  );
  return Array.from({ length: kernel[0] * kernel[1] }, (_, tap) => {
    const start = [Math.floor(tap / kernel[1]) * dilation[0], (tap % kernel[1]) * dilation[1]];
    return slice(
      padded,
      [0, ...start],
      [padded.shape[0]!, ...start.map((at, i) => at + (positions[i]! - 1) * stride[i]! + 1)],
      [1, ...stride],
    );
  });
};

/** Returns the rows that a convolution reads: the pixels under its kernel, [N, H', W', height · width · C]. */
export const patchesOf = (image: Tensor, params: Params, kernel: Pair): Tensor => {
  const taps = tapsOf(image, params, kernel);
  return taps.length === 1 ? taps[0]! : concat(taps, { dim: 3 });
};
