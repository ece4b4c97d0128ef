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
  divide,
  full,
  greater,
  isFinite,
  leafPaths,
  logicalAnd,
  logicalNot,
  logicalOr,
  type LossScaleState,
  mapTree,
  multiply,
  reshape,
  scope,
  slice,
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
  /**
   * bool [1 + tensors]: whether the loss and each mean gradient, in the order of `finiteNames`, are finite. A gradient that
   * overflowed under a loss scale that can still shrink counts as finite: the step is skipped instead.
   */
  readonly finite: Tensor;
  /** bool scalar: whether the update was left out because f16 gradients overflowed. */
  readonly skipped: Tensor;
}

/** What each entry of `StepResult.finite` speaks of. */
export const finiteNames = (params: unknown): string[] => ["the loss", ...leafPaths(params).map((path) => `the gradient of ${path}`)];

/**
 * One training step: this rank's loss and gradients, their exchange, the update. Traced.
 *
 * A step with a non-finite loss or gradient leaves the state as it was. All ranks decide alike, because the decision
 * rests on values that the exchange made equal. With a loss scale, a step whose gradients overflow is passed over with half the scale.
 */
export const trainStep =
  ({ model, optimizer, compressor, buckets, lossScale, ranks }: Parts): ((state: TrainState<Tensor>, batch: LabelledBatch) => StepResult) =>
  (state, batch) => {
    const key = foldIn(state.key, state.step);
    const scaling = state.lossScale as LossScaleState;
    const scaledLoss = (params: unknown): readonly [Tensor, { readonly loss: Tensor; readonly next: unknown }] => {
      const [loss, next] = model.loss(params, state.model, batch, { train: true, key: foldIn(foldIn(key, 0), axisIndex(dataAxis)) });
      return [lossScale === undefined ? loss : multiply(loss, scaling.scale), { loss, next }];
    };
    const [, { loss: ownLoss, next: modelState }, scaled] = valueAndGradWithAux(scaledLoss)(state.params);
    const gradients = lossScale === undefined ? scaled : zipTrees((gradient: Tensor) => divide(gradient, scaling.scale), scaled);
    const loss = allReduceMean(ownLoss, dataAxis);
    const [mean, residuals] = exchange(gradients, state.residuals, { axis: dataAxis, compressor, buckets, key: foldIn(key, 1) });
    return scope("update", () => {
      const [updates, optimizerState] = optimizer.update(mean, state.optimizer, { params: state.params });
      const next: TrainState<Tensor> = {
        params: applyUpdates(state.params, updates),
        // Each rank has seen other samples; one statistic for all keeps the state shared.
        model: ranks === 1 ? modelState : mapTree(modelState, (leaf: Tensor) => allReduceMean(leaf, dataAxis)),
        optimizer: optimizerState,
        lossScale: state.lossScale,
        residuals,
        key: state.key,
        step: add(state.step, 1),
      };
      const finite = stack([loss, ...flattenTree<Tensor>(mean).leaves].map((tensor) => all(isFinite(tensor))));
      const sound = all(finite);
      const kept = zipTrees((after: Tensor, before: Tensor) => where(sound, after, before), next, state);
      if (lossScale === undefined) return { state: kept, loss, finite, skipped: full([], 0, "bool") };
      const skipped = logicalAnd(slice(finite, [0], [1]), logicalAnd(logicalNot(sound), greater(scaling.scale, lossScale.minimum)));
      return {
        // A step that is passed over is done all the same: the next one draws other samples.
        state: { ...kept, lossScale: lossScale.update(scaling, sound), step: next.step },
        loss,
        finite: logicalOr(finite, skipped),
        skipped: reshape(skipped, []),
      };
    });
  };
