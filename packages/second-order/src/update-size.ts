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
   * Bound on the norm of the preconditioned gradient. `kl-clip`: limits the approximate change of the model's
   * predictions in one step, `η² Σ⟨V, ∇⟩ ≤ klClip`; requires the learning rate. `gradient-norm`: scales to the norm of
   * the gradient. `free`: no bound. Default: kl-clip.
   */
  readonly size?: "kl-clip" | "gradient-norm" | "free";
  /** Upper bound on `η² Σ⟨V, ∇⟩` for `kl-clip`. Default: 0.001. */
  readonly klClip?: number;
  /** Learning rate that later scales the updates. Required by `kl-clip`. */
  readonly learningRate?: Schedule;
}

/** Sums over all layers: inner product and squared norms of the gradient `∇` and the preconditioned gradient `V`. */
export interface UpdateSums {
  /** Inner product `Σ⟨V, ∇⟩`. */
  readonly inner: Tensor;
  /** Squared norm of the preconditioned gradient, `Σ‖V‖²`. */
  readonly direction: Tensor;
  /** Squared norm of the gradient, `Σ‖∇‖²`. */
  readonly gradient: Tensor;
}

export const addSums = (a: UpdateSums, b: UpdateSums): UpdateSums => ({
  inner: add(a.inner, b.inner),
  direction: add(a.direction, b.direction),
  gradient: add(a.gradient, b.gradient),
});

export const zeroSums = (): UpdateSums => ({ inner: full([], 0), direction: full([], 0), gradient: full([], 0) });

/** Checks the options that bound the norm of updates. Throws ArgumentError if options are invalid or inconsistent. */
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

/** Returns `numerator / denominator`, or `otherwise` if the denominator is 0. */
const quotient = (numerator: Tensor | number, denominator: Tensor, otherwise: number): Tensor =>
  where(greater(denominator, 0), divide(numerator, where(greater(denominator, 0), denominator, 1)), otherwise);

/**
 * Computes the scale factor ν of all preconditioned gradients: `min(1, √(klClip / (η² Σ⟨V, ∇⟩)))` for kl-clip,
 * `‖∇‖ / ‖V‖` for gradient-norm. ν is 1 if the learning rate or the gradient is 0, because no bound is needed.
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
