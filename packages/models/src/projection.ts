import { matmul, normal, type Tensor, zeros } from "@skein/tensor-core";
import { dense } from "./layers.ts";

/** Parameters of a dense layer with an optional bias: weight [in, out], bias [out]. */
export interface Projection {
  readonly weight: Tensor;
  readonly bias?: Tensor;
}

/** Standard deviation of the initial weights of transformers, as in GPT-2 and BERT. */
export const transformerDeviation = 0.02;

/**
 * Initializes a projection. The weight [in, out] is normal with standard deviation `deviation` (default 0.02). The bias
 * is zeros if `bias` is true, otherwise absent.
 */
export const initProjection = (
  key: Tensor,
  [numIn, numOut]: readonly [numIn: number, numOut: number],
  { bias, deviation = transformerDeviation }: { readonly bias: boolean; readonly deviation?: number },
): Projection => ({
  weight: normal(key, [numIn, numOut], { deviation }),
  ...(bias && { bias: zeros([numOut]) }),
});

/** Computes `x W + b`, or `x W` without a bias: [..., in] to [..., out]. */
export const project = ({ weight, bias }: Projection, x: Tensor): Tensor =>
  bias === undefined ? matmul(x, weight) : dense({ weight, bias }, x);
