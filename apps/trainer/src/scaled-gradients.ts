import type { LabelledBatch, Model } from "@skein/models";
import { multiply, type Tensor, valueAndGradWithAux } from "@skein/tensor-core";

/** What a loss is computed from beside parameters and batch. */
export interface LossContext {
  readonly modelState: unknown;
  /** u32[2], of this step and the rank's samples. */
  readonly key: Tensor;
  /** f32 scalar, or none. */
  readonly scale: Tensor | readonly [];
}

type ScaledGradients = readonly [scaled: Tensor, { readonly loss: Tensor; readonly next: unknown }, gradients: unknown];

/** Loss and gradients, both also with the scale of the loss; a function of its arguments alone. */
export const scaledGradients =
  (model: Model) =>
  (params: unknown, { modelState, key, scale }: LossContext, batch: LabelledBatch): ScaledGradients =>
    valueAndGradWithAux((own: unknown) => {
      const [loss, next] = model.loss(own, modelState, batch, { train: true, key });
      return [isUnscaled(scale) ? loss : multiply(loss, scale), { loss, next }] as const;
    })(params);

const isUnscaled = (scale: LossContext["scale"]): scale is readonly [] => Array.isArray(scale);
