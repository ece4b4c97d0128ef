import { withParameters } from "./frozen.ts";
import { multiply, type Tensor, valueAndGradWithAux } from "@skein/tensor-core";
import type { AnyModel, BatchTree } from "../modules/task.ts";

/** What a loss is computed from beside parameters and batch. */
export interface LossContext {
  /** All parameters of the model: of those that are not trained, the loss is computed from these. */
  readonly params: unknown;
  readonly modelState: unknown;
  /** u32[2], of this step and the rank's samples. */
  readonly key: Tensor;
  /** f32 scalar, or none. */
  readonly scale: Tensor | readonly [];
}

type ScaledGradients = readonly [scaled: Tensor, { readonly loss: Tensor; readonly next: unknown }, gradients: unknown];

/**
 * Loss and gradients of what is trained, both also with the scale of the loss; a function of its arguments alone.
 */
export const scaledGradients =
  (model: AnyModel) =>
  (trained: unknown, { params, modelState, key, scale }: LossContext, batch: BatchTree): ScaledGradients =>
    valueAndGradWithAux((own: unknown) => {
      const [loss, next] = model.loss(withParameters(params, own), modelState, batch, { train: true, key });
      return [isUnscaled(scale) ? loss : multiply(loss, scale), { loss, next }] as const;
    })(trained);

const isUnscaled = (scale: LossContext["scale"]): scale is readonly [] => Array.isArray(scale);
