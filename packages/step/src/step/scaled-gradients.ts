import { multiply, type Tensor, valueAndGradWithAux } from "@skein/tensor-core";
import type { AnyModel, BatchTree } from "../task/task.ts";
import { withParameters } from "../building/frozen.ts";
import { type BatchSplit, lossOfPart } from "./loss-of-part.ts";

/** Values of a rank's whole batch that the computation of each microbatch needs. */
export interface WholeBatch<Leaf> {
  /**
   * Number of unmasked rows in the rank's whole batch, f32 scalar. Empty if the batch is not split into microbatches,
   * or if the count is a constant.
   */
  readonly rankCount: Leaf | readonly [];
  /** Model state after the whole batch, for a model that needs it (`needsWhole`). Empty for other models. */
  readonly model: unknown;
}

/** Inputs of a loss in addition to trained parameters and batch. */
export interface LossContext {
  /** All parameters of the model, from which the loss reads the frozen parameters. */
  readonly params: unknown;
  readonly modelState: unknown;
  /** Random key of this step and of the rank's samples, u32 [2]. */
  readonly key: Tensor;
  /** Loss scale, f32 scalar. Empty without a loss scale. */
  readonly scale: Tensor | readonly [];
  readonly wholeBatch: WholeBatch<Tensor>;
}

type ScaledGradients = readonly [scaled: Tensor, { readonly loss: Tensor; readonly next: unknown }, gradients: unknown];

/**
 * Returns a function that computes a microbatch's contribution to the rank's loss, and the gradients with respect to
 * the trained parameters. The differentiated value, and so the gradients, are multiplied by the loss scale. The
 * function depends only on its arguments.
 */
export const scaledGradients =
  (model: AnyModel, split: BatchSplit) =>
  (trained: unknown, { params, modelState, key, scale, wholeBatch }: LossContext, batch: BatchTree): ScaledGradients =>
    valueAndGradWithAux((own: unknown) => {
      const whole = model.needsWhole === true && split.numParts > 1;
      const result = model.loss(withParameters(params, own), modelState, batch, {
        train: true,
        key,
        ...(whole && { whole: { state: wholeBatch.model, numParts: split.numParts } }),
      });
      const loss = lossOfPart(result, split, leafOrUndefined(wholeBatch.rankCount));
      const factor = leafOrUndefined(scale);
      return [factor === undefined ? loss : multiply(loss, factor), { loss, next: result[1] }] as const;
    })(trained);

/** Returns an optional tensor of a tree; undefined for an empty list, which marks an absent tensor. */
const leafOrUndefined = (leaf: Tensor | readonly []): Tensor | undefined =>
  Array.isArray(leaf) ? undefined : (leaf as Tensor);
