import { type Aggregator, type ExchangeOptions, fusedMean } from "@skein/compressors";
import {
  meanOverParts,
  observeLayers,
  ownStatistics,
  type Statistics,
  type StatisticsCollector,
} from "@skein/second-order";
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
import { countOfPart, splitOf } from "./loss-of-part.ts";
import { type WholeBatch, type LossContext, scaledGradients } from "./scaled-gradients.ts";
import type { CurvatureMode } from "../building/curvature.ts";
import { axisSize } from "@skein/tensor-core/backend";
import type { Parts, TrainState } from "./train-state.ts";
import { trainedOf } from "../building/frozen.ts";
import { dataAxis, everyRankAxis, replicasAxisOf } from "../job/mesh.ts";
import type { BatchTree } from "../task/task.ts";

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

/** What a pass over parts of a rank's batch has seen so far. */
export interface PassAhead<Leaf> extends WholeBatch<Leaf> {
  /** Number of parts, u32 scalar. */
  readonly parts: Leaf;
}

/** What a step takes in next to state and batch. */
export interface StepInputs<Leaf> {
  readonly wholeBatch: WholeBatch<Leaf>;
  /** What the earlier parts of the rank's batch have given. Absent: there is none. */
  readonly before?: Accumulated<Leaf>;
}

/** Inputs of a step that computes the rank's batch at once. */
export const singlePart: StepInputs<Tensor> = { wholeBatch: { rankCount: [], model: [] } };

/** @param inputs default: the step computes the rank's batch at once. */
export type TrainStep = (state: TrainState<Tensor>, batch: BatchTree, inputs?: StepInputs<Tensor>) => StepResult;

/** What parts of a rank's batch have given so far, in a step that computes several one after the other. */
export interface Accumulated<Leaf> {
  /** Number of parts, u32 scalar. */
  readonly parts: Leaf;
  /**
   * Sums over the parts. Each part contributes its share of the rank's loss, so the sums are those of the whole batch
   * once all parts are there. Gradients have the scale of the loss, if there is one.
   */
  readonly sums: { readonly loss: Leaf; readonly gradients: unknown; readonly statistics: unknown };
  /** State of the model after these parts. */
  readonly model: unknown;
  /** Figures of the update that the first part has made, with `overlap: dear`: see `StepResult`. */
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

/** What the loss of a part is computed from. */
const contextOf = (
  { lossScale, model }: Pick<Parts, "lossScale" | "model">,
  { params, state }: { readonly params: unknown; readonly state: TrainState<Tensor> },
  { wholeBatch, before }: StepInputs<Tensor>,
): LossContext => ({
  params,
  modelState: model.joinParts === undefined ? (before?.model ?? state.model) : state.model,
  key: keyOfPart(state, before?.parts),
  scale: lossScale === undefined ? [] : (state.lossScale as LossScaleState).scale,
  wholeBatch,
});

/** Random key of a part of the rank's batch, u32[2]. @param number of earlier parts; absent for the first. */
export const keyOfPart = (state: Pick<TrainState<Tensor>, "key" | "step">, number: Tensor | undefined): Tensor => {
  const key = foldIn(foldIn(foldIn(state.key, state.step), 0), axisIndex(dataAxis));
  return number === undefined ? key : foldIn(key, number);
};

/** Sums of what two parts of a batch have given. */
const sumOf = <T>(before: T, own: T): T =>
  inPhase("update", () => scope("accumulate", () => zipTrees((a: Tensor, b: Tensor) => add(a, b), before, own) as T));

/** State of the model after the earlier parts and this one. */
const joinedState = (
  { model }: Pick<Parts, "model">,
  state: TrainState<Tensor>,
  own: unknown,
  before: Pick<Accumulated<Tensor>, "model" | "parts"> | undefined,
): unknown =>
  before === undefined || model.joinParts === undefined
    ? own
    : inPhase("update", () =>
        scope("accumulate", () =>
          model.joinParts!({ before: state.model, earlier: before.model, own, numEarlier: before.parts }),
        ),
      );

/** Key of the samples that statistics of layers are drawn from. */
const drawKeyOf = ({ key, step }: TrainState<Tensor>, before: Accumulated<Tensor> | undefined): Tensor => {
  const own = foldIn(foldIn(foldIn(key, step), 2), axisIndex(dataAxis));
  return before === undefined ? own : foldIn(own, before.parts);
};

/** Loss, gradients and statistics of one part. @param collector of the statistics, made of that of the job. */
const partGradients = (
  parts: Parts,
  from: { readonly params: unknown; readonly state: TrainState<Tensor> },
  batch: BatchTree,
  mode: CurvatureMode,
  inputs: StepInputs<Tensor>,
  collector: (ofJob: StatisticsCollector) => StatisticsCollector,
): {
  readonly loss: Tensor;
  readonly next: unknown;
  readonly gradients: unknown;
  readonly statistics: Statistics;
} => {
  const { curvature, lossScale } = parts;
  const context = contextOf(parts, from, inputs);
  const trained = trainedOf(parts, from.params);
  const gradientsOf = scaledGradients(parts.model, splitOf(parts));
  const observing =
    curvature?.observing === undefined || mode === "keep"
      ? undefined
      : curvature.observing(drawKeyOf(from.state, inputs.before));
  const { result, statistics } =
    observing === undefined
      ? { result: gradientsOf(trained, context, batch), statistics: {} }
      : observeLayers(gradientsOf, [trained, context, batch], {
          ...observing,
          collector: collector(observing.collector),
          ...(lossScale !== undefined && { lossScale: (from.state.lossScale as LossScaleState).scale }),
        });
  const [, { loss, next }, gradients] = result;
  return { loss, next, gradients, statistics };
};

/** One part of a rank's batch before the last: nothing is sent, and no parameter changes. Traced. */
export const accumulate =
  (parts: Parts, mode: CurvatureMode) =>
  (state: TrainState<Tensor>, batch: BatchTree, inputs: StepInputs<Tensor>): Accumulated<Tensor> => {
    const { before } = inputs;
    const { loss, next, gradients, statistics } = partGradients(
      parts,
      { params: state.params, state },
      batch,
      mode,
      inputs,
      ownStatistics,
    );
    const own = { loss, gradients, statistics };
    return {
      sums: before === undefined ? own : sumOf(before.sums, own),
      parts: before === undefined ? full([], 1, "u32") : add(before.parts, 1),
      model: joinedState(parts, state, next, before),
      ...(before?.update !== undefined && { update: before.update }),
    };
  };

/** Whether a model's parts of a batch need the state of the whole batch. */
export const needsWhole = ({ model, accumulate: numParts }: Pick<Parts, "model" | "accumulate">): boolean =>
  numParts > 1 && model.needsWhole === true;

/**
 * What parts of a rank's batch need to know of all parts, from those so far and the next one. Traced; of the model's
 * forward pass only what the results depend on is computed.
 *
 * @param before what the pass has seen in the earlier parts.
 */
export const lookAhead =
  (parts: Parts) =>
  (state: TrainState<Tensor>, batch: BatchTree, before?: PassAhead<Tensor>): PassAhead<Tensor> => {
    const key = keyOfPart(state, before?.parts);
    const result = parts.model.loss(state.params, state.model, batch, { train: true, key });
    const count = countOfPart(result);
    return {
      rankCount: count === undefined ? [] : before === undefined ? count : add(before.rankCount as Tensor, count),
      model: needsWhole(parts) ? joinedState(parts, state, result[1], before) : [],
      parts: before === undefined ? full([], 1, "u32") : add(before.parts, 1),
    };
  };

/**
 * This rank's loss and gradients with these parameters, and the model's next statistics, means over the ranks.
 *
 * @param params all of the model; gradients are those of the trained ones.
 * @param mode whether statistics of layers are gathered, means over parts and ranks.
 * @param inputs with earlier parts, loss, gradients and statistics are those of all parts.
 */
export const lossAndGradients = (
  parts: Parts,
  from: { readonly params: unknown; readonly state: TrainState<Tensor> },
  batch: BatchTree,
  mode: CurvatureMode,
  inputs: StepInputs<Tensor>,
): {
  readonly loss: Tensor;
  readonly gradients: unknown;
  readonly modelState: unknown;
  readonly statistics: Statistics;
} => {
  const { lossScale, sharding, mesh, accumulate: numParts } = parts;
  const { before } = inputs;
  const { next, statistics, ...own } = partGradients(parts, from, batch, mode, inputs, (ofJob) =>
    before === undefined ? ofJob : meanOverParts(ofJob, before.sums.statistics as Statistics, numParts),
  );
  const { loss, gradients: scaled } =
    before === undefined
      ? own
      : sumOf(
          { loss: before.sums.loss, gradients: before.sums.gradients },
          { loss: own.loss, gradients: own.gradients },
        );
  const modelAfter = joinedState(parts, from.state, next, before);
  // Each rank has seen other samples, or other positions of them; one statistic for all keeps the state shared.
  const [meanLoss, modelState] = inPhase("communication", () =>
    scope("mean-loss", () => meanOverRanks([loss, modelAfter] as const, everyRankAxis(mesh))),
  );
  return {
    loss: meanLoss,
    gradients:
      lossScale === undefined
        ? ofMeanLoss(scaled, sharding)
        : inPhase("backward", () =>
            zipTrees(
              (gradient: Tensor) => divide(gradient, (from.state.lossScale as LossScaleState).scale),
              ofMeanLoss(scaled, sharding),
            ),
          ),
    modelState,
    statistics,
  };
};

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
