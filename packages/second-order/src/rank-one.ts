import { add, divide, matmul, multiply, reshape, slice, square, subtract, sum, type Tensor } from "@skein/tensor-core";
import type { LayerGradient } from "./statistics/layer.ts";
import type { UpdateSums } from "./update-size.ts";

export const dot = (a: Tensor, b: Tensor): Tensor => sum(multiply(a, b));

export const normSquare = (x: Tensor): Tensor => sum(square(x));

/** Splits an input vector into the inputs of the weight and the input of the bias, [1]. */
const splitInputs = (input: Tensor, { weight }: LayerGradient): { readonly weight: Tensor; readonly bias: Tensor } => {
  const inputs = weight.shape[0]!;
  return { weight: slice(input, [0], [inputs]), bias: slice(input, [inputs]) };
};

/**
 * Returns the product `∇ᵀ a`, [outputs], of a layer's gradient and a vector of its inputs. The input of the bias comes
 * last.
 */
export const projectOnInputs = (gradient: LayerGradient, input: Tensor): Tensor => {
  const own = splitInputs(input, gradient);
  const [inputs, outputs] = gradient.weight.shape as [number, number];
  const product = reshape(matmul(reshape(own.weight, [1, inputs]), gradient.weight), [outputs]);
  return gradient.bias === undefined ? product : add(product, multiply(gradient.bias, own.bias));
};

export const gradientSquare = ({ weight, bias }: LayerGradient): Tensor =>
  bias === undefined ? normSquare(weight) : add(normSquare(weight), normSquare(bias));

/** A layer's gradient minus an outer product, and sums over the result. */
export interface RankOneDifference {
  /** Difference `γV = ∇ − a uᵀ`. */
  readonly direction: LayerGradient;
  /** Inner products and squared norms of `V = direction / γ` and `∇`. */
  readonly sums: UpdateSums;
}

/**
 * Computes `γV = ∇ − a uᵀ`. The caller chooses `u` so that V is the gradient multiplied by the inverse of a damped
 * rank-one matrix.
 *
 * @param input a, [inputs]
 * @param output u, [outputs]
 * @param projected `∇ᵀ a`
 * Cost: four flops and two reads per gradient element.
 */
export const subtractRankOne = (
  gradient: LayerGradient,
  { input, output, projected, damping }: Readonly<Record<"input" | "output" | "projected" | "damping", Tensor>>,
): RankOneDifference => {
  const own = splitInputs(input, gradient);
  const [inputs, outputs] = gradient.weight.shape as [number, number];
  const total = gradientSquare(gradient);
  const removed = dot(projected, output);
  const remaining = subtract(total, removed);
  const remainingSquare = add(subtract(remaining, removed), multiply(normSquare(input), normSquare(output)));
  return {
    direction: {
      weight: subtract(gradient.weight, multiply(reshape(own.weight, [inputs, 1]), reshape(output, [1, outputs]))),
      ...(gradient.bias !== undefined && { bias: subtract(gradient.bias, multiply(own.bias, output)) }),
    },
    sums: {
      inner: divide(remaining, damping),
      direction: divide(remainingSquare, square(damping)),
      gradient: total,
    },
  };
};
