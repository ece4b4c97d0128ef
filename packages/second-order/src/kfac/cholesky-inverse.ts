import {
  add,
  broadcastTo,
  cholesky,
  divide,
  full,
  inverseFromCholesky,
  multiply,
  reciprocal,
  reshape,
  sqrt,
  type Tensor,
  tril,
} from "@skein/tensor-core";
import { identityMatrix, rowsTimes } from "../matrices.ts";
import { statisticElements } from "../statistics/collect.ts";
import { timesColumns, timesRows, trim } from "../statistics/factor-blocks.ts";
import { mirrored, packTriangle, unpackTriangle } from "../statistics/triangle.ts";
import { factoredDamping } from "./factored-damping.ts";
import type { DerivedFactor, FactorInverse } from "./factor-inverse.ts";

/** Returns `factor + amount · I`. A vector represents a diagonal matrix. */
const addDamping = (factor: Tensor, amount: Tensor): Tensor => {
  if (factor.rank === 1) return add(factor, amount);
  return add(factor, multiply(broadcastTo(identityMatrix(factor.shape.at(-1)!), factor.shape), amount));
};

/**
 * Computes the preconditioned gradient `(A + π√γ I)⁻¹ ∇ (G + √γ/π I)⁻¹`. The inverses of both damped factors are
 * computed by Cholesky factorization.
 *
 * Cost: n³ multiplications and n(n + 1)/2 numbers sent per factor and refresh; two products per step.
 * Source: Martens and Grosse 2015, arXiv 1503.05671, section 6.3.
 */
export const choleskyInverse: FactorInverse = {
  needsBoth: true, // needsBoth: damping depends on the sizes of both factors
  init: (shape, damping) => ({ inverse: addDamping(full(shape, 0), divide(1, sqrt(damping))) }),
  derive: ({ input, gradient }, sizes, damping) => {
    const amounts = factoredDamping({ input, gradient }, sizes, damping);
    const inverse = (factor: Tensor, amount: Tensor): DerivedFactor => ({
      inverse:
        factor.rank === 1
          ? reciprocal(addDamping(factor, amount))
          : // Its triangles differ by rounding. Ranks that receive the inverse have the lower triangle only.
            mirrored(tril(inverseFromCholesky(cholesky(addDamping(factor, amount))))),
    });
    return {
      input: (blocks = input) => inverse(blocks, amounts.input),
      gradient: (blocks = gradient) => inverse(blocks, amounts.gradient),
    };
  },
  pack: ({ inverse }) => (inverse!.rank === 1 ? inverse! : reshape(packTriangle(inverse!), [-1])),
  unpack: (packed, shape) => ({
    inverse: shape.length === 1 ? packed : unpackTriangle(reshape(packed, [...shape.slice(0, -2), -1]), shape.at(-1)!),
  }),
  packedElements: statisticElements,
  precondition: (gradient, { input, gradient: output }) => {
    const [a, g] = [input["inverse"]!, output["inverse"]!];
    const left = a.rank === 1 ? rowsTimes(gradient, a) : timesRows(a, gradient);
    const both = g.rank === 1 ? multiply(left, g) : timesColumns(left, g);
    return trim(both, gradient.shape as [number, number]);
  },
};
