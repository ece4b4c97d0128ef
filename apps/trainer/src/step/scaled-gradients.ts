import { multiply, type Tensor, valueAndGradWithAux } from "@skein/tensor-core";
import type { AnyModel, BatchTree } from "../task/task.ts";
import { withParameters } from "../building/frozen.ts";
import { type BatchSplit, lossOfPart } from "./loss-of-part.ts";

/** Facts of the whole batch for a part of a rank's batch. */
export interface WholeBatch<Leaf> {
  /**
   * Number of unmasked rows in the rank's whole batch, f32 scalar. Empty: the batch has one part, or the model's count
   * is a constant.
   */
  readonly rankCount: Leaf | readonly [];
  /** State of the model after the whole batch, for a model that needs it (`needsWhole`). Empty otherwise. */
  readonly model: unknown;
}

/** Inputs of a loss other than trained parameters and batch. */
export interface LossContext {
  /** All parameters of the model. The loss reads the frozen parameters from here. */
  readonly params: unknown;
  readonly modelState: unknown;
  /** u32[2], of this step and the rank's samples. */
  readonly key: Tensor;
  /** Loss scale, f32 scalar. Empty: no loss scale. */
  readonly scale: Tensor | readonly [];
  readonly wholeBatch: WholeBatch<Tensor>;
}

type ScaledGradients = readonly [scaled: Tensor, { readonly loss: Tensor; readonly next: unknown }, gradients: unknown];

/**
 * This part's contribution to the loss of a rank, and its gradients with respect to the trained parameters; both
 * multiplied by the loss scale. Depends only on its arguments.
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

/** Convert an optional tensor from its form in trees, in which an empty list means absent. */
const leafOrUndefined = (leaf: Tensor | readonly []): Tensor | undefined =>
  Array.isArray(leaf) ? undefined : (leaf as Tensor);
