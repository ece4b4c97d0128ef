import { type Aggregator, type ExchangeOptions, fusedMean } from "@skein/compressors";
import type { LabelledBatch } from "@skein/models";
import {
  axisIndex,
  divide,
  flattenTree,
  foldIn,
  inPhase,
  type LossScaleState,
  multiply,
  scope,
  type Tensor,
  unflattenTree,
  valueAndGradWithAux,
  zipTrees,
} from "@skein/tensor-core";
import { dataAxis, type Parts, type TrainState } from "./train-state.ts";

export interface StepResult {
  readonly state: TrainState<Tensor>;
  /** Mean over all ranks, f32 scalar. */
  readonly loss: Tensor;
  /**
   * bool [1 + tensors]: whether the loss and each mean gradient, in the order of `finiteNames`, are finite. A gradient
   * that overflowed under a loss scale that can still shrink counts as finite: the step is skipped instead.
   */
  readonly finite: Tensor;
  /** f32 [2]: `updateFigures` of the update that was made in this step, or `noUpdate`. */
  readonly update: Tensor;
  /** bool scalar: whether the update was left out because f16 gradients overflowed. */
  readonly skipped: Tensor;
}

export type TrainStep = (state: TrainState<Tensor>, batch: LabelledBatch) => StepResult;

/** How this step's gradients are exchanged. */
export const exchangeOptions = (
  { buckets, priorities }: Parts,
  compressor: Aggregator,
  { key, step }: TrainState<Tensor>,
): ExchangeOptions<unknown> => ({
  axis: dataAxis,
  compressor,
  buckets,
  priorities,
  key: foldIn(foldIn(key, step), 1),
  step,
});

/** This rank's loss and gradients with these parameters, and the model's next statistics, means over the ranks. */
export const lossAndGradients = (
  { model, lossScale }: Parts,
  { params, state }: { readonly params: unknown; readonly state: TrainState<Tensor> },
  batch: LabelledBatch,
): { readonly loss: Tensor; readonly gradients: unknown; readonly modelState: unknown } => {
  const key = foldIn(foldIn(foldIn(state.key, state.step), 0), axisIndex(dataAxis));
  const scaling = state.lossScale as LossScaleState;
  const scaledLoss = (own: unknown): readonly [Tensor, { readonly loss: Tensor; readonly next: unknown }] => {
    const [loss, next] = model.loss(own, state.model, batch, { train: true, key });
    return [lossScale === undefined ? loss : multiply(loss, scaling.scale), { loss, next }];
  };
  const [, { loss, next }, scaled] = valueAndGradWithAux(scaledLoss)(params);
  // Each rank has seen other samples; one statistic for all keeps the state shared.
  const [meanLoss, modelState] = inPhase("communication", () =>
    scope("mean-loss", () => meanOverRanks([loss, next] as const)),
  );
  return {
    loss: meanLoss,
    gradients:
      lossScale === undefined
        ? scaled
        : inPhase("backward", () => zipTrees((gradient: Tensor) => divide(gradient, scaling.scale), scaled)),
    modelState,
  };
};

/** Name what makes new parameters of mean gradients, and what watches over it. */
export const updating = <T>(fn: () => T): T => inPhase("update", () => scope("update", fn));

/** Means of all leaves over the ranks, in one message: it is the number of messages that small tensors cost. */
const meanOverRanks = <T>(tree: T): T => {
  const { leaves, structure } = flattenTree<Tensor>(tree);
  return unflattenTree(structure, fusedMean(leaves, { axis: dataAxis }));
};
