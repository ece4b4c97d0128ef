import { all, concat, isFinite, reshape, type Shape, type Tensor } from "@skein/tensor-core";

/** Tensors that a refresh derives from a factor, such as its inverse. The tensors are used until the next refresh. */
export type DerivedFactor = Readonly<Record<string, Tensor>>;

/** A pair of values for a layer: one for its inputs, and one for the gradients of its outputs. */
export interface Sides<T> {
  readonly input: T;
  readonly gradient: T;
}

/** Method to divide a gradient by the Kronecker product of two factors. */
export interface FactorInverse {
  /** Whether the derived tensors of one factor depend on the other factor of the layer. */
  readonly needsBoth: boolean;
  /**
   * Returns the derived tensors to use before the first refresh. Preconditioning with these tensors divides by γ.
   *
   * @param shape result of `factorShape`.
   */
  init(shape: Shape, damping: Tensor): DerivedFactor;
  /**
   * Returns two functions that derive tensors: one from the factor of the inputs, one from the factor of the output
   * gradients. A rank calls only the functions of the factors assigned to it. The given factors are undamped, because
   * running means are never damped.
   *
   * @param sizes number of rows of each factor, without padding rows of zeros.
   * @returns functions that derive the tensors of a full factor, or only of the given blocks.
   */
  derive(factors: Sides<Tensor>, sizes: Sides<number>, damping: Tensor): Sides<(blocks?: Tensor) => DerivedFactor>;
  /** Packs derived tensors into a vector for sending. */
  pack(derived: DerivedFactor): Tensor;
  unpack(packed: Tensor, shape: Shape): DerivedFactor;
  /** Returns the length of the vector from `pack`, for a factor of this shape. */
  packedElements(shape: Shape): number;
  /** Preconditions a layer's gradient [inputs, outputs], with the gradient of the bias as last row. */
  precondition(gradient: Tensor, derived: Sides<DerivedFactor>, damping: Tensor): Tensor;
}

/** Whether all elements of the derived tensors are finite, bool scalar. */
export const hasFiniteValues = (derived: DerivedFactor): Tensor =>
  all(isFinite(concat(Object.values(derived).map((tensor) => reshape(tensor, [-1])))));
