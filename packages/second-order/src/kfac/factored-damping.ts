import { clip, divide, maximum, multiply, sqrt, sum, type Tensor } from "@skein/tensor-core";
import { diagonalOf } from "../matrices.ts";
import type { Sides } from "./factor-inverse.ts";

/** Returns the mean of a factor's diagonal of length `size`. A diagonal factor is stored as a vector. */
const meanDiagonal = (factor: Tensor, size: number): Tensor =>
  multiply(sum(factor.rank === 1 ? factor : diagonalOf(factor)), 1 / size);

/** Numbers to add to the diagonals of both factors of a layer, f32 scalars. */
export interface FactoredDamping {
  readonly input: Tensor;
  readonly gradient: Tensor;
}

const tiny = 1e-30;

/**
 * Splits γ between the two factors of a layer according to their sizes: `π√γ` for A and `√γ/π` for G,
 * `π² = (tr A / inputs) / (tr G / outputs)`. The product of the two dampings is γ, and layers with large inputs and
 * small gradients are damped as much as layers with small inputs and large gradients.
 *
 * π is limited to 10⁻⁶ … 10⁶, so that a layer with zero statistics has finite inverses.
 * Source: Martens and Grosse 2015, arXiv 1503.05671, section 6.3.
 */
export const factoredDamping = (factors: Sides<Tensor>, sizes: Sides<number>, damping: Tensor): FactoredDamping => {
  const [input, gradient] = [meanDiagonal(factors.input, sizes.input), meanDiagonal(factors.gradient, sizes.gradient)];
  const ratio = divide(maximum(input, tiny), maximum(gradient, tiny));
  const pi = clip(sqrt(ratio), 1e-6, 1e6);
  const root = sqrt(damping);
  return { input: multiply(root, pi), gradient: divide(root, pi) };
};
