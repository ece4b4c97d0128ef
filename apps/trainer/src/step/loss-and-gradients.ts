import { type Aggregator, type ExchangeOptions, fusedMean } from "@skein/compressors";
import { observeLayers, type Statistics } from "@skein/second-order";
import {
  add,
  axisIndex,
  divide,
  flattenTree,
  foldIn,
  full,
  inPhase,
  type LossScaleState,
  mapTree,
  multiply,
  scope,
  shardAxes,
  type Sharding,
  type Tensor,
  unflattenTree,
  zipTrees,
} from "@skein/tensor-core";
import { type LossContext, scaledGradients } from "./scaled-gradients.ts";
import type { CurvatureMode } from "./curvature.ts";
import { axisSize } from "@skein/tensor-core/backend";
import type { Parts, TrainState } from "./train-state.ts";
import { trainedOf } from "./frozen.ts";
import { dataAxis, everyRankAxis, replicasAxisOf } from "./mesh.ts";
import type { BatchTree } from "../modules/task.ts";

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
  /** See `modelFigures`. */
  readonly figures: Tensor | readonly [];
}

/** @param before what the earlier parts of the rank's batch have given, where it is computed in several. */
export type TrainStep = (state: TrainState<Tensor>, batch: BatchTree, before?: Accumulated<Tensor>) => StepResult;

/** What parts of a rank's batch have given so far, in a step that computes several one after the other. */
export interface Accumulated<Leaf> {
  /** u32 scalar: how many parts. */
  readonly parts: Leaf;
  /** Over them; gradients with the scale of the loss, where there is one. */
  readonly sums: { readonly loss: Leaf; readonly gradients: unknown };
  /** What the last of them has left; each part begins with what the one before has left. */
  readonly model: unknown;
  /** Of the update that the first of them has made, with `overlap: dear`: see `StepResult`. */
  readonly update?: Leaf | undefined;
}

/** How this step's gradients are exchanged. */
export const exchangeOptions = (
  parts: Parts,
  compressor: Aggregator,
  { key, step }: TrainState<Tensor>,
): ExchangeOptions<unknown> => ({
  axis: replicasAxisOf(parts),
  compressor,
  buckets: parts.buckets,
  priorities: parts.priorities,
  key: foldIn(foldIn(key, step), 1),
  step,
});

/** What a loss is computed from, in this part of a step. */
const contextOf = (
  { lossScale }: Pick<Parts, "lossScale">,
  { params, state }: { readonly params: unknown; readonly state: TrainState<Tensor> },
  before: Accumulated<Tensor> | undefined,
): LossContext => {
  const key = foldIn(foldIn(foldIn(state.key, state.step), 0), axisIndex(dataAxis));
  return {
    params,
    modelState: before?.model ?? state.model,
    key: before === undefined ? key : foldIn(key, before.parts),
    scale: lossScale === undefined ? [] : (state.lossScale as LossScaleState).scale,
  };
};

/** Sums of what two parts of a batch have given. */
const sumOf = <T>(before: T, own: T): T =>
  inPhase("update", () => scope("accumulate", () => zipTrees((a: Tensor, b: Tensor) => add(a, b), before, own) as T));

/** One part of a rank's batch before the last: nothing travels, and no parameter changes. Traced. */
export const accumulate =
  (parts: Parts) =>
  (state: TrainState<Tensor>, batch: BatchTree, before?: Accumulated<Tensor>): Accumulated<Tensor> => {
    const [, { loss, next }, gradients] = scaledGradients(parts.model)(
      trainedOf(parts, state.params),
      contextOf(parts, { params: state.params, state }, before),
      batch,
    );
    const own = { loss, gradients };
    return {
      sums: before === undefined ? own : sumOf(before.sums, own),
      parts: before === undefined ? full([], 1, "u32") : add(before.parts, 1),
      model: next,
      ...(before?.update !== undefined && { update: before.update }),
    };
  };

/**
 * This rank's loss and gradients with these parameters, and the model's next statistics, means over the ranks.
 *
 * @param params all of the model; gradients are of those that are trained.
 * @param mode whether statistics of layers are gathered on the way: means over the ranks.
 * @param before with it, loss and gradients are means over its parts and this one; statistics of layers are of this
 * one.
 */
export const lossAndGradients = (
  parts: Parts,
  { params, state }: { readonly params: unknown; readonly state: TrainState<Tensor> },
  batch: BatchTree,
  mode: CurvatureMode,
  before?: Accumulated<Tensor>,
): {
  readonly loss: Tensor;
  readonly gradients: unknown;
  readonly modelState: unknown;
  readonly statistics: Statistics;
} => {
  const { model, lossScale, curvature, sharding, mesh, accumulate: numParts } = parts;
  const stepKey = foldIn(state.key, state.step);
  const scaling = state.lossScale as LossScaleState;
  const context = contextOf(parts, { params, state }, before);
  const trained = trainedOf(parts, params);
  const gradientsOf = scaledGradients(model);
  const { result, statistics } =
    curvature?.observing === undefined || mode === "keep"
      ? { result: gradientsOf(trained, context, batch), statistics: {} }
      : observeLayers(gradientsOf, [trained, context, batch], {
          ...curvature.observing(foldIn(foldIn(stepKey, 2), axisIndex(dataAxis))),
          ...(lossScale !== undefined && { lossScale: scaling.scale }),
        });
  const [, { loss: ownLoss, next }, ownGradients] = result;
  const own = { loss: ownLoss, gradients: ownGradients };
  const { loss, gradients: scaled } = before === undefined ? own : meanOf(sumOf(before.sums, own), numParts);
  // Each rank has seen other samples, or other positions of them; one statistic for all keeps the state shared.
  const [meanLoss, modelState] = inPhase("communication", () =>
    scope("mean-loss", () => meanOverRanks([loss, next] as const, everyRankAxis(mesh))),
  );
  return {
    loss: meanLoss,
    gradients:
      lossScale === undefined
        ? ofMeanLoss(scaled, sharding)
        : inPhase("backward", () =>
            zipTrees((gradient: Tensor) => divide(gradient, scaling.scale), ofMeanLoss(scaled, sharding)),
          ),
    modelState,
    statistics,
  };
};

const meanOf = <T>(sums: T, count: number): T =>
  inPhase("update", () => scope("accumulate", () => mapTree(sums, (sum: Tensor) => multiply(sum, 1 / count)) as T));

/** Name what makes new parameters of mean gradients, and what watches over it. */
export const updating = <T>(fn: () => T): T => inPhase("update", () => scope("update", fn));

/**
 * Gradients whose mean over the ranks that hold the same is that of the mean loss of all: a part that one rank has gets
 * what the losses of all ranks say that share the whole out.
 */
const ofMeanLoss = (gradients: unknown, sharding: Sharding): unknown =>
  mapTree(gradients, (gradient: Tensor, path) => {
    const numRanks = shardAxes(sharding(path)).reduce((product, axis) => product * axisSize(axis), 1);
    return numRanks === 1 ? gradient : inPhase("backward", () => multiply(gradient, 1 / numRanks));
  });

/**
 * Means over the ranks, in one message: it is the number of messages that small tensors cost. What is not f32, such as
 * the places of experts, is the same on all ranks, and stays: see `requireSharedState`.
 */
const meanOverRanks = <T>(tree: T, axis: string): T => {
  const { leaves, structure } = flattenTree<Tensor>(tree);
  const hasMean = leaves.map(({ dtype }) => dtype === "f32");
  const means = fusedMean(
    leaves.filter((_, i) => hasMean[i]!),
    { axis },
  ).values();
  return unflattenTree(
    structure,
    leaves.map((leaf, i) => (hasMean[i]! ? means.next().value! : leaf)),
  );
};
