import { all, concat, isFinite, reshape, type Shape, type Tensor } from "@skein/tensor-core";

/** Tensors derived from a factor at a refresh, such as its inverse, and used until the next refresh. */
export type DerivedFactor = Readonly<Record<string, Tensor>>;

/** A value for each side of a layer. */
export interface Sides<T> {
  readonly input: T;
  readonly gradient: T;
}

/** Method to divide by the Kronecker product of two factors. */
export interface FactorInverse {
  /** Whether the derived tensors of one factor depend on the other factor of the layer. */
  readonly needsBoth: boolean;
  /**
   * Returns the value before the first refresh, which makes preconditioning a division by γ. @param shape result of
   * `factorShape`.
   */
  init(shape: Shape, damping: Tensor): DerivedFactor;
  /**
   * Derive tensors from undamped factors; the running means themselves are never damped. Returns one function per side,
   * so that a rank computes only the sides that it owns.
   *
   * @param sizes number of rows of each factor, without padding rows of zeros.
   * @returns functions that derive the whole factor, or only the given blocks.
   */
  derive(factors: Sides<Tensor>, sizes: Sides<number>, damping: Tensor): Sides<(blocks?: Tensor) => DerivedFactor>;
  /** Pack derived tensors into a vector for sending. */
  pack(derived: DerivedFactor): Tensor;
  unpack(packed: Tensor, shape: Shape): DerivedFactor;
  /** Length of the vector from `pack`, for a factor of this shape. */
  packedElements(shape: Shape): number;
  /** Precondition a layer's gradient [inputs, outputs], with the gradient of the bias as last row. */
  precondition(gradient: Tensor, derived: Sides<DerivedFactor>, damping: Tensor): Tensor;
}

/** Whether all derived numbers are finite, bool scalar. */
export const hasFiniteValues = (derived: DerivedFactor): Tensor =>
  all(isFinite(concat(Object.values(derived).map((tensor) => reshape(tensor, [-1])))));
