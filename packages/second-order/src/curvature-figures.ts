import { divide, full, greater, multiply, subtract, type Tensor, where } from "@skein/tensor-core";
import type { UpdateSums } from "./update-size.ts";

/** Metrics of a preconditioned update, f32 scalars. */
export interface CurvatureFigures {
  /** Scale factor ν of the preconditioned gradients; 1 if no bound was applied. */
  readonly sizeFactor: Tensor;
  /**
   * Share of the gradient that the curvature removes: `1 − γ Σ⟨V, ∇⟩ / Σ‖∇‖²`, 0 to 1. 0 means that the update is the
   * gradient divided by γ.
   */
  readonly curvature: Tensor;
}

export const zeroFigures = (): CurvatureFigures => ({ sizeFactor: full([], 1), curvature: full([], 0) });

export const figuresOf = (sizeFactor: Tensor, damping: Tensor, { inner, gradient }: UpdateSums): CurvatureFigures => {
  const moves = greater(gradient, 0);
  return {
    sizeFactor,
    curvature: where(moves, subtract(1, divide(multiply(damping, inner), where(moves, gradient, 1))), 0),
  };
};
