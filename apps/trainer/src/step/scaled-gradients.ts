import { multiply, type Tensor, valueAndGradWithAux } from "@skein/tensor-core";
import type { AnyModel, BatchTree } from "../task/task.ts";
import { withParameters } from "../building/frozen.ts";
import { type BatchSplit, lossOfPart } from "./loss-of-part.ts";

/** What a part of a rank's batch knows of the whole batch. */
export interface WholeBatch<Leaf> {
  /**
   * Number of rows that count in the rank's whole batch, f32 scalar. None for a batch of one part, and for a model
   * whose count is a constant.
   */
  readonly rankCount: Leaf | readonly [];
  /** State of the model after the whole batch, for a model that needs it (`needsWhole`). None otherwise. */
  readonly model: unknown;
}

/** What a loss is computed from, next to parameters and batch. */
export interface LossContext {
  /** All parameters of the model. The loss takes those that are not trained from here. */
  readonly params: unknown;
  readonly modelState: unknown;
  /** u32[2], of this step and the rank's samples. */
  readonly key: Tensor;
  /** f32 scalar, or none. */
  readonly scale: Tensor | readonly [];
  readonly wholeBatch: WholeBatch<Tensor>;
}

type ScaledGradients = readonly [scaled: Tensor, { readonly loss: Tensor; readonly next: unknown }, gradients: unknown];

/**
 * This part's contribution to the loss of a rank, and its gradients with respect to the trained parameters; both also
 * multiplied by the scale of the loss. A function of its arguments alone.
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

/** An optional tensor as trees of tensors hold it: an empty list if it is absent. */
const leafOrUndefined = (leaf: Tensor | readonly []): Tensor | undefined =>
  Array.isArray(leaf) ? undefined : (leaf as Tensor);
