import { type Aggregator, beginExchange, finishExchange } from "@skein/compressors";
import { everyRankAxis } from "@skein/job/node";
import {
  add,
  all,
  allReduce,
  applyUpdates,
  cast,
  equal,
  flattenTree,
  full,
  fullLike,
  greater,
  isFinite,
  logicalNot,
  reshape,
  stack,
  type Tensor,
  where,
  zerosLike,
  zipTrees,
  concat,
} from "@skein/tensor-core";
import { updatedAverage } from "./averaged.ts";
import { observing } from "../building/curvature.ts";
import {
  accumulate,
  type Accumulated,
  singlePart,
  exchangeOptions,
  lossAndGradients,
  type StepInputs,
  type TrainStep,
  inUpdateScope,
} from "./loss-and-gradients.ts";
import type { BatchTree } from "../task/task.ts";
import { trainedOf, withParameters } from "../building/frozen.ts";
import { modelFigures } from "./model-figures.ts";
import type { Parts, StepKind, TrainState } from "./train-state.ts";
import { noUpdate, updateFigures } from "./update-figures.ts";

// Implements DeAR (Zhang et al. 2023, arXiv 2302.12445), which splits the all-reduce of a gradient in two. The
// reduce-scatter runs during the backward pass. The all-gather and the update are deferred to the forward pass of the
// next step, and run before the layer that reads the parameter.

/**
 * Highest message priority. The message that reports non-finite gradients has this priority, so that it is not queued
 * behind gradients.
 */
const urgent = 3;

/**
 * Applies pending gradients, if any, to parameters and optimizer state. Each updated tensor depends only on one bucket;
 * the metrics depend on all buckets.
 */
const withPendingApplied = (
  parts: Parts,
  compressor: Aggregator,
  state: TrainState<Tensor>,
): Pick<TrainState<Tensor>, "params" | "optimizer" | "average"> & { readonly update: Tensor } => {
  const { key: _, step: __, ...options } = exchangeOptions(parts, compressor, state); // key and number of another step
  const trained = trainedOf(parts, state.params);
  const mean = finishExchange(trained, state.pending, options);
  return inUpdateScope(() => {
    const [updates, optimizer] = parts.optimizer.update(mean, state.optimizer, { params: trained });
    const figures = updateFigures(parts, mean, state.optimizer, optimizer);
    const due = greater(state.due as Tensor, 0);
    const ifDue = <T>(after: T, before: T): T =>
      zipTrees((a: Tensor, b: Tensor) => where(due, a, b), after, before) as T;
    const params = applyUpdates(trained, updates);
    return {
      params: withParameters(state.params, ifDue(params, trained)),
      average: ifDue(updatedAverage(parts, state.average, params, state.step), state.average),
      optimizer: ifDue(optimizer, state.optimizer),
      update: where(due, figures, fullLike(figures, noUpdate)),
    };
  });
};

/** A state without pending gradients, and the metrics of the update that was applied. */
export interface Settled<State, Figures> {
  readonly state: State;
  readonly update: Figures;
}

/**
 * Returns the state for training, with pending gradients applied. In the result, `pending` still contains the applied
 * gradients, but `due` is 0.
 */
const applyPending = (
  parts: Parts,
  compressor: Aggregator,
  state: TrainState<Tensor>,
): Settled<TrainState<Tensor>, Tensor> => {
  const { update, ...caught } = withPendingApplied(parts, compressor, state);
  return { state: { ...state, ...caught, due: full([], 0, "u32") }, update };
};

/**
 * Returns a function that computes the state without pending gradients, for evaluation and saving. Traced. Training
 * continues from this state with bitwise equal results.
 */
export const settle =
  (parts: Parts, compressor: Aggregator): ((state: TrainState<Tensor>) => Settled<TrainState<Tensor>, Tensor>) =>
  (state) => {
    const { state: caught, update } = applyPending(parts, compressor, state);
    const pending = zipTrees((leaf: Tensor) => zerosLike(leaf), state.pending) as unknown[];
    return { state: { ...caught, pending }, update };
  };

/**
 * Computes the first of several microbatches, and applies the update of the previous step during the forward pass.
 * Traced. The results of later microbatches are added. The last microbatch is computed by `deferredStep`, with the
 * accumulated results.
 */
export const deferredPart =
  (parts: Parts, { compressor, mode }: StepKind) =>
  (
    state: TrainState<Tensor>,
    batch: BatchTree,
    inputs: StepInputs<Tensor>,
  ): { readonly state: TrainState<Tensor>; readonly before: Accumulated<Tensor> } => {
    const { state: caught, update } = applyPending(parts, compressor, state);
    return { state: caught, before: { ...accumulate(parts, mode)(caught, batch, inputs), update } };
  };

/**
 * Computes one training step whose update is applied in the next step. Traced. With several microbatches, the first
 * microbatch has already applied the pending update, and the gradients of all microbatches are sent during the backward
 * pass of the last microbatch.
 *
 * If a loss or gradient is not finite on some rank, residuals, statistics and step number are unchanged, and no update
 * is pending. An additional small all-reduce detects non-finite gradients. A check of the mean gradients would delay
 * the first layer of the next step until all gradients have arrived.
 */
export const deferredStep =
  (parts: Parts, { compressor, mode }: StepKind): TrainStep =>
  (state, batch, inputs = singlePart) => {
    const { before } = inputs;
    const { params, optimizer, average, update } =
      before === undefined ? withPendingApplied(parts, compressor, state) : { ...state, update: before.update! };
    const { loss, gradients, modelState, statistics } = lossAndGradients(parts, { params, state }, batch, mode, inputs);
    const [pending, residuals] = beginExchange(gradients, state.residuals, exchangeOptions(parts, compressor, state));
    return inUpdateScope(() => {
      const ownFaults = stack(
        flattenTree<Tensor>(gradients).leaves.map((tensor) => cast(logicalNot(all(isFinite(tensor))), "i32")),
      );
      const faults = allReduce(ownFaults, everyRankAxis(parts.mesh), "sum", { priority: urgent });
      const finite = concat([reshape(isFinite(loss), [1]), equal(faults, 0)]);
      const sound = all(finite);
      const ifSound = <T>(after: T, before: T): T =>
        zipTrees((a: Tensor, b: Tensor) => where(sound, a, b), after, before) as T;
      return {
        state: {
          ...state,
          params,
          average,
          optimizer: ifSound(observing(parts.optimizer, optimizer, statistics, mode), optimizer),
          model: ifSound(modelState, state.model),
          residuals: ifSound(residuals, state.residuals as unknown[]),
          pending,
          due: cast(sound, "u32"),
          step: ifSound(add(state.step, 1), state.step),
        },
        loss,
        finite,
        update,
        figures: modelFigures(parts.model, modelState),
        skipped: full([], 0, "bool"),
      };
    });
  };
