import { divide, full, greater, multiply, subtract, type Tensor, where } from "@skein/tensor-core";
import type { UpdateSums } from "./update-size.ts";

/** Metrics of an update, f32 scalars. */
export interface CurvatureFigures {
  /** Scale factor ν of the preconditioned gradients; 1 if no bound applied. */
  readonly sizeFactor: Tensor;
  /**
   * Share of the gradient removed by the curvature: `1 − γ Σ⟨V, ∇⟩ / Σ‖∇‖²`, from 0, for an update equal to the
   * gradient over γ, to 1.
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
