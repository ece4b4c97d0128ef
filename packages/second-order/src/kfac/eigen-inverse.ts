import {
  add,
  concat,
  divide,
  eigh,
  elementCount,
  full,
  matmul,
  maximum,
  multiply,
  reshape,
  slice,
  type Tensor,
} from "@skein/tensor-core";
import { identityMatrix } from "../matrices.ts";
import type { DerivedFactor, FactorInverse } from "./factor-inverse.ts";

/** Eigenvalues and eigenvectors of a factor; of a diagonal the values alone. */
const eigenOf = (factor: Tensor): DerivedFactor => {
  if (factor.rank === 1) return { values: factor };
  const { values, vectors } = eigh(factor);
  // A second moment has none below 0 but by rounding.
  return { values: maximum(values, 0), vectors };
};

/** `Qᵀ ∇`, or `Q ∇` to turn back. */
const turnInputs = (gradient: Tensor, { vectors }: DerivedFactor, isBack: boolean): Tensor =>
  vectors === undefined ? gradient : matmul(vectors, gradient, { transposeA: !isBack });

/** `∇ Q`, or `∇ Qᵀ` to turn back. */
const turnOutputs = (gradient: Tensor, { vectors }: DerivedFactor, isBack: boolean): Tensor =>
  vectors === undefined ? gradient : matmul(gradient, vectors, { transposeB: isBack });

/**
 * `(A ⊗ G + γI)⁻¹ ∇` exactly, by the eigenvalues a and g and eigenvectors of both factors: `Q_A [(Q_Aᵀ ∇ Q_G) / (a gᵀ +
 * γ)] Q_Gᵀ`. The damping is that of the product, so it may change without a refresh.
 *
 * Cost: per refresh about 7n³ flops for each factor; n² + n numbers of each travel; per step four products.
 * Source: Grosse and Martens 2016, arXiv 1602.01407, appendix B; Pauloski et al. 2020, SC.
 */
export const eigenInverse: FactorInverse = {
  init: (shape) => ({
    values: full([shape[0]!], 0),
    ...(shape.length === 2 && { vectors: identityMatrix(shape[0]!) }),
  }),
  derive: ({ input, gradient }) => ({ input: () => eigenOf(input), gradient: () => eigenOf(gradient) }),
  pack: ({ values, vectors }) =>
    vectors === undefined ? values! : concat([values!, reshape(vectors, [elementCount(vectors.shape)])]),
  unpack: (packed, shape) => {
    const n = shape[0]!;
    if (shape.length === 1) return { values: packed };
    return { values: slice(packed, [0], [n]), vectors: reshape(slice(packed, [n]), [n, n]) };
  },
  packedElements: (shape) => (shape.length === 1 ? shape[0]! : shape[0]! * (shape[0]! + 1)),
  precondition: (gradient, { input, gradient: output }, damping) => {
    const turned = turnOutputs(turnInputs(gradient, input, false), output, false);
    const curvature = multiply(reshape(input["values"]!, [-1, 1]), reshape(output["values"]!, [1, -1]));
    const divided = divide(turned, add(curvature, damping));
    return turnOutputs(turnInputs(divided, input, true), output, true);
  },
};
