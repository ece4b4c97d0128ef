import {
  add,
  all,
  cholesky,
  concat,
  divide,
  equal,
  full,
  inverseFromCholesky,
  iota,
  isFinite,
  matmul,
  multiply,
  reciprocal,
  reshape,
  type Shape,
  sqrt,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { packTriangle, unpackTriangle } from "../statistics/triangle.ts";
import { factoredDamping } from "./factored-damping.ts";

/** What is derived of a factor at a refresh, and kept until the next one. */
export type DerivedFactor = Readonly<Record<string, Tensor>>;

/** Both sides of a layer. */
export interface Sides<T> {
  readonly input: T;
  readonly gradient: T;
}

/** A way to divide by the Kronecker product of two factors. */
export interface FactorInverse {
  /** Before the first refresh: so that preconditioning is a division by γ. */
  init(shape: Shape, damping: Tensor): DerivedFactor;
  /**
   * Of a factor as it is; nothing is added to the running mean itself. Each side as a function, so that a rank computes
   * only those that it owns.
   */
  derive(factors: Sides<Tensor>, damping: Tensor): Sides<() => DerivedFactor>;
  /** As a vector, to be sent. */
  pack(derived: DerivedFactor): Tensor;
  unpack(packed: Tensor, shape: Shape): DerivedFactor;
  /** Numbers of `pack`, of a factor of this shape. */
  packedElements(shape: Shape): number;
  /** A layer's gradient [inputs, outputs], that of the bias as its last row, divided. */
  precondition(gradient: Tensor, derived: Sides<DerivedFactor>, damping: Tensor): Tensor;
}

const identityMatrix = (n: number): Tensor =>
  where(equal(iota([n, n], "i32", { dim: 0 }), iota([n, n], "i32", { dim: 1 })), full([n, n], 1), 0);

/** `factor + amount · I`; a vector is a diagonal. */
const damped = (factor: Tensor, amount: Tensor): Tensor =>
  factor.rank === 1 ? add(factor, amount) : add(factor, multiply(identityMatrix(factor.shape[0]!), amount));

const column = (x: Tensor): Tensor => reshape(x, [-1, 1]);

/** `A⁻¹ ∇ G⁻¹` */
const fromBothSides = (gradient: Tensor, input: Tensor, output: Tensor): Tensor => {
  const left = input.rank === 1 ? multiply(column(input), gradient) : matmul(input, gradient);
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

/** Whether all numbers of what was derived are finite. bool scalar. */
export const isSound = (derived: DerivedFactor): Tensor =>
  all(isFinite(concat(Object.values(derived).map((tensor) => reshape(tensor, [-1])))));
