import { clip, divide, maximum, multiply, sqrt, sum, type Tensor } from "@skein/tensor-core";
import { diagonalOf } from "../matrices.ts";
import type { Sides } from "./factor-inverse.ts";

/** The mean of a factor's diagonal, of as many numbers as it has; one that is diagonal is kept as a vector. */
const meanDiagonal = (factor: Tensor, size: number): Tensor =>
  multiply(sum(factor.rank === 1 ? factor : diagonalOf(factor)), 1 / size);

/** What is added to the diagonals of both factors of a layer. f32 scalars. */
export interface FactoredDamping {
  readonly input: Tensor;
  readonly gradient: Tensor;
}

const tiny = 1e-30;

/**
 * Split γ over the two factors of a layer in the ratio of their sizes: `π√γ` for A and `√γ/π` for G, `π² = (tr A /
 * inputs) / (tr G / outputs)`. Then the product of both is γ, and a layer whose inputs are large and whose gradients
 * are small is damped as one with it the other way round.
 *
 * π stays within 10⁻⁶ to 10⁶, so that a layer that nothing reaches has finite inverses.
 * Source: Martens and Grosse 2015, arXiv 1503.05671, section 6.3.
 */
export const factoredDamping = (factors: Sides<Tensor>, sizes: Sides<number>, damping: Tensor): FactoredDamping => {
  const [input, gradient] = [meanDiagonal(factors.input, sizes.input), meanDiagonal(factors.gradient, sizes.gradient)];
  const ratio = divide(maximum(input, tiny), maximum(gradient, tiny));
  const pi = clip(sqrt(ratio), 1e-6, 1e6);
  const root = sqrt(damping);
  return { input: multiply(root, pi), gradient: divide(root, pi) };
};
