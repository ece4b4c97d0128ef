import {
  add,
  ArgumentError,
  divide,
  full,
  greater,
  minimum,
  multiply,
  resolveSchedule,
  type Schedule,
  sqrt,
  square,
  type Tensor,
  where,
} from "@skein/tensor-core";

export interface UpdateSizeOptions {
  /**
   * How long the preconditioned gradient may be. `kl-clip` bounds by how much one step changes what the model says,
   * about: `η² Σ⟨V, ∇⟩ ≤ klClip`; it needs the learning rate. `gradient-norm` gives it the norm of the gradient.
   * `free` leaves it as it is. Default: kl-clip.
   */
  readonly size?: "kl-clip" | "gradient-norm" | "free";
  /** Default: 0.001. */
  readonly klClip?: number;
  /** That by which updates are scaled in the end: of `kl-clip`. */
  readonly learningRate?: Schedule;
}

/** Sums over all layers, of the gradient `∇` and what became of it, `V`. */
export interface UpdateSums {
  /** `Σ⟨V, ∇⟩` */
  readonly inner: Tensor;
  /** `Σ‖V‖²` */
  readonly direction: Tensor;
  /** `Σ‖∇‖²` */
  readonly gradient: Tensor;
}

export const addSums = (a: UpdateSums, b: UpdateSums): UpdateSums => ({
  inner: add(a.inner, b.inner),
  direction: add(a.direction, b.direction),
  gradient: add(a.gradient, b.gradient),
});

export const noSums = (): UpdateSums => ({ inner: full([], 0), direction: full([], 0), gradient: full([], 0) });

/** @throws ArgumentError for options that do not go together. */
export const checkUpdateSize = (
  fn: string,
  { size = "kl-clip", klClip = 1e-3, learningRate }: UpdateSizeOptions,
): void => {
  if (!["kl-clip", "gradient-norm", "free"].includes(size))
    throw new ArgumentError(`${fn}: size is ${String(size)}; use kl-clip, gradient-norm or free`);
  if (size !== "kl-clip") return;
  if (!(klClip > 0 && klClip < Infinity))
    throw new ArgumentError(
      `${fn}: klClip is ${klClip}, but it bounds a divergence; use a positive number such as 0.001, or size: "free"`,
    );
  if (learningRate === undefined)
    throw new ArgumentError(
      `${fn}: size: "kl-clip" needs the learning rate, which is part of its bound; give learningRate, or size: "gradient-norm"`,
    );
};

/** `numerator / denominator`, or `otherwise` where there is nothing to divide by. */
const quotient = (numerator: Tensor | number, denominator: Tensor, otherwise: number): Tensor =>
  where(greater(denominator, 0), divide(numerator, where(greater(denominator, 0), denominator, 1)), otherwise);

/**
 * ν, by which all preconditioned gradients are multiplied: `min(1, √(klClip / (η² Σ⟨V, ∇⟩)))` for kl-clip, `‖∇‖ / ‖V‖`
 * for gradient-norm. Where the learning rate or the gradient is 0 it is 1: there is nothing to bound.
 *
 * Source: Osawa et al. 2019, and Pauloski et al. 2020, for the clip.
 */
export const sizeFactor = (
  { size = "kl-clip", klClip = 1e-3, learningRate }: UpdateSizeOptions,
  { inner, direction, gradient }: UpdateSums,
  step: Tensor,
): Tensor => {
  switch (size) {
    case "free":
      return full([], 1);
    case "gradient-norm":
      return sqrt(quotient(gradient, direction, 1));
    case "kl-clip": {
      const divergence = multiply(square(resolveSchedule(learningRate!, step)), inner);
      return minimum(sqrt(quotient(klClip, divergence, 1)), 1);
    }
  }
};
