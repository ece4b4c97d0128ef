import { exchange } from "@skein/compressors";
import type { LabelledBatch } from "@skein/models";
import {
  all,
  allReduceMean,
  applyUpdates,
  axisIndex,
  flattenTree,
  foldIn,
  add,
  isFinite,
  leafPaths,
  mapTree,
  scope,
  stack,
  type Tensor,
  valueAndGradWithAux,
  where,
  zipTrees,
} from "@skein/tensor-core";
import { dataAxis, type Parts, type TrainState } from "./train-state.ts";

export interface StepResult {
  readonly state: TrainState<Tensor>;
  /** Mean over all ranks, f32 scalar. */
  readonly loss: Tensor;
  /** bool [1 + tensors]: whether the loss and each mean gradient, in the order of `finiteNames`, are finite. */
  readonly finite: Tensor;
}

/** What each entry of `StepResult.finite` speaks of. */
export const finiteNames = (params: unknown): string[] => ["the loss", ...leafPaths(params).map((path) => `the gradient of ${path}`)];

/**
 * One training step: this rank's loss and gradients, their exchange, the update. Traced.
 *
 * A step with a non-finite loss or gradient leaves the state as it was. All ranks decide alike, because the decision
 * rests on values that the exchange made equal.
 */
export const trainStep =
  ({ model, optimizer, compressor, buckets, ranks }: Parts): ((state: TrainState<Tensor>, batch: LabelledBatch) => StepResult) =>
  (state, batch) => {
    const key = foldIn(state.key, state.step);
    const [ownLoss, modelState, gradients] = valueAndGradWithAux(model.loss)(state.params, state.model, batch, {
      train: true,
      key: foldIn(foldIn(key, 0), axisIndex(dataAxis)),
    });
    const loss = allReduceMean(ownLoss, dataAxis);
    const [mean, residuals] = exchange(gradients, state.residuals, { axis: dataAxis, compressor, buckets, key: foldIn(key, 1) });
    return scope("update", () => {
      const [updates, optimizerState] = optimizer.update(mean, state.optimizer, { params: state.params });
      const next: TrainState<Tensor> = {
        params: applyUpdates(state.params, updates),
        // Each rank has seen other samples; one statistic for all keeps the state shared.
        model: ranks === 1 ? modelState : mapTree(modelState, (leaf: Tensor) => allReduceMean(leaf, dataAxis)),
        optimizer: optimizerState,
        residuals,
        key: state.key,
        step: add(state.step, 1),
      };
      const finite = stack([loss, ...flattenTree<Tensor>(mean).leaves].map((tensor) => all(isFinite(tensor))));
      const sound = all(finite);
      return { state: zipTrees((after: Tensor, before: Tensor) => where(sound, after, before), next, state), loss, finite };
    });
  };
