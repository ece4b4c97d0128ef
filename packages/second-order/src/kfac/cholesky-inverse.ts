import {
  add,
  cholesky,
  divide,
  full,
  inverseFromCholesky,
  matmul,
  multiply,
  reciprocal,
  sqrt,
  type Tensor,
} from "@skein/tensor-core";
import { identityMatrix, rowsTimes } from "../matrices.ts";
import { packTriangle, unpackTriangle } from "../statistics/triangle.ts";
import { factoredDamping } from "./factored-damping.ts";
import type { DerivedFactor, FactorInverse } from "./factor-inverse.ts";

/** `factor + amount · I`; a vector is a diagonal. */
const damped = (factor: Tensor, amount: Tensor): Tensor =>
  factor.rank === 1 ? add(factor, amount) : add(factor, multiply(identityMatrix(factor.shape[0]!), amount));

/** `A⁻¹ ∇ G⁻¹` */
const fromBothSides = (gradient: Tensor, input: Tensor, output: Tensor): Tensor => {
  const left = input.rank === 1 ? rowsTimes(gradient, input) : matmul(input, gradient);
  return output.rank === 1 ? multiply(left, output) : matmul(left, output);
};

/**
 * `(A + π√γ I)⁻¹ ∇ (G + √γ/π I)⁻¹`, with the inverses of both damped factors through Cholesky factors.
 *
 * Cost: per refresh n³ multiplications for each factor; n(n + 1)/2 numbers of each travel; per step two products.
 * Source: Martens and Grosse 2015, arXiv 1503.05671, section 6.3.
 */
export const choleskyInverse: FactorInverse = {
  init: (shape, damping) => ({ inverse: damped(full(shape, 0), divide(1, sqrt(damping))) }),
  derive: ({ input, gradient }, damping) => {
    const amounts = factoredDamping(input, gradient, damping);
    const inverse = (factor: Tensor, amount: Tensor): DerivedFactor => ({
      inverse:
        factor.rank === 1 ? reciprocal(damped(factor, amount)) : inverseFromCholesky(cholesky(damped(factor, amount))),
    });
    return { input: () => inverse(input, amounts.input), gradient: () => inverse(gradient, amounts.gradient) };
  },
  pack: ({ inverse }) => (inverse!.rank === 1 ? inverse! : packTriangle(inverse!)),
  unpack: (packed, shape) => ({ inverse: shape.length === 1 ? packed : unpackTriangle(packed, shape[0]!) }),
  packedElements: (shape) => (shape.length === 1 ? shape[0]! : (shape[0]! * (shape[0]! + 1)) / 2),
  precondition: (gradient, { input, gradient: output }) =>
    fromBothSides(gradient, input["inverse"]!, output["inverse"]!),
};
