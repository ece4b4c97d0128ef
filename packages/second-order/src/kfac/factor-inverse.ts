import { all, concat, isFinite, reshape, type Shape, type Tensor } from "@skein/tensor-core";

/** What is derived of a factor at a refresh, and kept until the next one. */
export type DerivedFactor = Readonly<Record<string, Tensor>>;

/** Both sides of a layer. */
export interface Sides<T> {
  readonly input: T;
  readonly gradient: T;
}

/** A way to divide by the Kronecker product of two factors. */
export interface FactorInverse {
  /** Whether what is derived of one factor of a layer depends on the other one. */
  readonly needsBoth: boolean;
  /** Before the first refresh: so that preconditioning is a division by γ. @param shape as of `factorShape`. */
  init(shape: Shape, damping: Tensor): DerivedFactor;
  /**
   * Of a factor as it is; nothing is added to the running mean itself. Each side as a function, so that a rank computes
   * only those that it owns.
   *
   * @param sizes rows of each, without those of zeros.
   * @returns by the whole factor, unless it is given some of its blocks.
   */
  derive(factors: Sides<Tensor>, sizes: Sides<number>, damping: Tensor): Sides<(blocks?: Tensor) => DerivedFactor>;
  /** As a vector, to be sent. */
  pack(derived: DerivedFactor): Tensor;
  unpack(packed: Tensor, shape: Shape): DerivedFactor;
  /** Numbers of `pack`, of a factor of this shape. */
  packedElements(shape: Shape): number;
  /** A layer's gradient [inputs, outputs], that of the bias as its last row, divided. */
  precondition(gradient: Tensor, derived: Sides<DerivedFactor>, damping: Tensor): Tensor;
}

/** Whether all numbers of what was derived are finite. bool scalar. */
export const isSound = (derived: DerivedFactor): Tensor =>
  all(isFinite(concat(Object.values(derived).map((tensor) => reshape(tensor, [-1])))));
