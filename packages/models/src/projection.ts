import { matmul, normal, type Tensor, zeros } from "@skein/tensor-core";
import { dense } from "./layers.ts";

/** A dense layer that may have no bias: weight [in, out], bias [out]. */
export interface Projection {
  readonly weight: Tensor;
  readonly bias?: Tensor;
}

/** Deviation of the first weights of transformers, as in GPT-2 and BERT. */
export const transformerDeviation = 0.02;

/** A normal weight [in, out] of a small deviation, 0.02 by default, and where it is asked for a bias of zeros. */
export const initProjection = (
  key: Tensor,
  [numIn, numOut]: readonly [numIn: number, numOut: number],
  { bias, deviation = transformerDeviation }: { readonly bias: boolean; readonly deviation?: number },
): Projection => ({
  weight: normal(key, [numIn, numOut], { deviation }),
  ...(bias && { bias: zeros([numOut]) }),
});

/** `x W + b`, or `x W`: [..., in] to [..., out]. */
export const project = ({ weight, bias }: Projection, x: Tensor): Tensor =>
  bias === undefined ? matmul(x, weight) : dense({ weight, bias }, x);
