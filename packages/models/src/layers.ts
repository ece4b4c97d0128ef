import { add, ArgumentError, cast, dropout, foldIn, matmul, multiply, type Shape, type Tensor, zeros } from "@skein/tensor-core";
import type { RunContext } from "./model.ts";

/** Weight and bias of a dense layer [in, out], [out], or of a convolution [height, width, in, out], [out]. */
export interface Affine {
  readonly weight: Tensor;
  readonly bias: Tensor;
}

/** An affine layer with a zero bias. */
export const initAffine = (initialise: (key: Tensor, shape: Shape) => Tensor, key: Tensor, shape: Shape): Affine => ({
  weight: initialise(key, shape),
  bias: zeros([shape.at(-1)!]),
});

/** `x W + b`: [..., in] to [..., out]. */
export const dense = ({ weight, bias }: Affine, x: Tensor): Tensor => add(matmul(x, weight), bias);

/** Images as f32: bytes are scaled from 0…255 to 0…1, floats are taken as they are. */
export const pixels = (images: Tensor): Tensor => (images.dtype === "u8" ? multiply(cast(images, "f32"), 1 / 255) : images);

/**
 * Dropout while training; nothing otherwise. `use` tells the places of a model apart, so that each draws its own values.
 * @throws ArgumentError when training with a rate above 0 and no key: every step would drop the same values, or none.
 */
export const dropWhileTraining = (x: Tensor, rate: number, { train, key }: RunContext, use = 0): Tensor => {
  if (!train || rate === 0) return x;
  if (key === undefined)
    throw new ArgumentError(
      `dropout of rate ${rate} needs a key, but the training step passed none; pass { train: true, key } with a fresh key every step`,
    );
  return dropout(x, rate, foldIn(key, use));
};
