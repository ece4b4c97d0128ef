import { type Aggregator, type ExchangeOptions, fusedMean } from "@skein/compressors";
import { dataAxis, everyRankAxis, replicasAxisOf } from "@skein/job/node";
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
import type { BatchTree } from "../task/task.ts";

export interface StepResult {
  readonly state: TrainState<Tensor>;
  /** Mean loss over all ranks, f32 scalar. */
  readonly loss: Tensor;
  /**
   * Whether the loss and each mean gradient are finite, in the order of `finiteNames`, bool [1 + tensors]. A gradient
   * that overflowed counts as finite while the loss scale can still shrink, because the step is then skipped.
   */
  readonly finite: Tensor;
  /** Metrics of the update made in this step, f32 [2 or 4]: `updateFigures`, or `noUpdate` if there was no update. */
  readonly update: Tensor;
  /** Whether the update was skipped because f16 gradients overflowed, bool scalar. */
  readonly skipped: Tensor;
  /** Metrics of the model, as returned by `modelFigures`. */
  readonly figures: Tensor | readonly [];
}

/**
 * Values of the whole batch, accumulated over the microbatches processed so far. They are computed before the gradients
 * of the first microbatch.
 */
export interface PassAhead<Leaf> extends WholeBatch<Leaf> {
  /** Number of microbatches processed so far, u32 scalar. */
  readonly parts: Leaf;
}

/** Inputs of a step in addition to state and batch. */
export interface StepInputs<Leaf> {
  readonly wholeBatch: WholeBatch<Leaf>;
  /** Accumulated results of the earlier microbatches. Absent: this is the first microbatch. */
  readonly before?: Accumulated<Leaf>;
}

/** Inputs of a step that computes the rank's batch as one microbatch. */
export const singlePart: StepInputs<Tensor> = { wholeBatch: { rankCount: [], model: [] } };

/** A traced training step. @param inputs Default: the step computes the rank's batch as one microbatch. */
export type TrainStep = (state: TrainState<Tensor>, batch: BatchTree, inputs?: StepInputs<Tensor>) => StepResult;

/**
 * Accumulated loss, gradients, statistics and model state of a rank's microbatches, which are computed one after the
 * other.
 */
export interface Accumulated<Leaf> {
  /** Number of microbatches processed so far, u32 scalar. */
  readonly parts: Leaf;
  /**
   * Sums over the microbatches. Each microbatch contributes a share of the rank's loss, so after the last microbatch
   * the sums cover the whole batch. Gradients are multiplied by the loss scale, if there is one.
   */
  readonly sums: { readonly loss: Leaf; readonly gradients: unknown; readonly statistics: unknown };
  /** Model state after the microbatches computed so far. */
  readonly model: unknown;
  /** Metrics of the update that the first microbatch applied, as in `StepResult`. Only with `overlap: dear`. */
  readonly update?: Leaf | undefined;
}

/** Returns the options for exchanging the gradients of a step. */
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

/** Returns the inputs of a microbatch's loss, in addition to the trained parameters and the batch. */
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

/**
 * Returns the random key of a microbatch, u32 [2].
 *
 * @param number Number of earlier microbatches. Undefined for the first microbatch.
 */
export const keyOfPart = (state: Pick<TrainState<Tensor>, "key" | "step">, number: Tensor | undefined): Tensor => {
  const key = foldIn(foldIn(foldIn(state.key, state.step), 0), axisIndex(dataAxis));
  return number === undefined ? key : foldIn(key, number);
};

/** Adds the accumulated results of the earlier microbatches and the results of the current microbatch. */
const sumOf = <T>(before: T, own: T): T =>
  inPhase("update", () => scope("accumulate", () => zipTrees((a: Tensor, b: Tensor) => add(a, b), before, own) as T));

/** Returns the model state after the earlier microbatches and the current microbatch. */
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

/** Returns the random key that selects the samples for layer statistics, u32 [2]. */
const drawKeyOf = ({ key, step }: TrainState<Tensor>, before: Accumulated<Tensor> | undefined): Tensor => {
  const own = foldIn(foldIn(foldIn(key, step), 2), axisIndex(dataAxis));
  return before === undefined ? own : foldIn(own, before.parts);
};

/**
 * Computes loss, gradients and statistics of one microbatch.
 *
 * @param collector Returns the statistics collector to use, given the collector of the job.
 */
const partGradients = (
  parts: Parts,
  from: { readonly params: unknown; readonly state: TrainState<Tensor> },
  batch: BatchTree,
  mode: CurvatureMode,
  inputs: StepInputs<Tensor>,
  collector: (jobCollector: StatisticsCollector) => StatisticsCollector,
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

/** Computes a microbatch other than the last. Exchanges no gradients and changes no parameters. Traced. */
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

/** Whether each microbatch needs the model state of the whole batch. */
export const needsWhole = ({ model, accumulate: numParts }: Pick<Parts, "model" | "accumulate">): boolean =>
  numParts > 1 && model.needsWhole === true;

/**
 * Accumulates the values of the whole batch that all microbatches need: adds the number of unmasked rows and the model
 * state of one microbatch to `before`. Traced. Computes only the nodes of the model's forward pass that the results
 * depend on.
 *
 * @param before Accumulated results of the earlier microbatches.
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
 * Computes loss and gradients for the given parameters, and the next model state. Loss and model state are means over
 * the ranks. Gradients are this rank's gradients; the mean over the ranks is the gradient of the loss.
 *
 * @param params All parameters of the model. Gradients are computed for the trained parameters only.
 * @param mode Curvature mode of the step. Modes other than "keep" also gather layer statistics, as means over
 * microbatches and ranks.
 * @param inputs If `before` has the results of earlier microbatches, loss, gradients and statistics include these
 * microbatches.
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
  const { next, statistics, ...own } = partGradients(parts, from, batch, mode, inputs, (jobCollector) =>
    before === undefined ? jobCollector : meanOverParts(jobCollector, before.sums.statistics as Statistics, numParts),
  );
  const { loss, gradients: scaled } =
    before === undefined
      ? own
      : sumOf(
          { loss: before.sums.loss, gradients: before.sums.gradients },
          { loss: own.loss, gradients: own.gradients },
        );
  const modelAfter = joinedState(parts, from.state, next, before);
  // Each rank has processed different samples, or different positions of the same samples. The mean keeps the model
  // state equal on all ranks.
  const [meanLoss, modelState] = inPhase("communication", () =>
    scope("mean-loss", () => meanOverRanks([loss, modelAfter] as const, everyRankAxis(mesh))),
  );
  return {
    loss: meanLoss,
    gradients:
      lossScale === undefined
        ? scaleToMeanLoss(scaled, sharding)
        : inPhase("backward", () =>
            zipTrees(
              (gradient: Tensor) => divide(gradient, (from.state.lossScale as LossScaleState).scale),
              scaleToMeanLoss(scaled, sharding),
            ),
          ),
    modelState,
    statistics,
  };
};

/**
 * Runs `fn`, and tags the nodes that it traces as part of the update: nodes that compute new parameters from mean
 * gradients, and checks of the update.
 */
export const inUpdateScope = <T>(fn: () => T): T => inPhase("update", () => scope("update", fn));

/**
 * Scales gradients so that the mean over the ranks with the same shard is the gradient of the mean loss over all ranks.
 * Without scaling, the gradient of a shard is a sum over the losses of all ranks that share the parameter.
 */
const scaleToMeanLoss = (gradients: unknown, sharding: Sharding): unknown =>
  mapTree(gradients, (gradient: Tensor, path) => {
    const numRanks = shardAxes(sharding(path)).reduce((product, axis) => product * axisSize(axis), 1);
    return numRanks === 1 ? gradient : inPhase("backward", () => multiply(gradient, 1 / numRanks));
  });

/**
 * Computes means over the ranks in one message, because latency dominates for small tensors. Tensors that are not f32,
 * such as expert slots, are equal on all ranks and remain unchanged, see `requireSharedState`.
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
