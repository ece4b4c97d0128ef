import { exchange } from "@skein/compressors";
import {
  add,
  all,
  applyUpdates,
  full,
  fullLike,
  greater,
  logicalAnd,
  logicalNot,
  logicalOr,
  type LossScaleState,
  reshape,
  slice,
  type Tensor,
  where,
  zipTrees,
} from "@skein/tensor-core";
import { updatedAverage } from "./averaged.ts";
import { observing, refreshing } from "../building/curvature.ts";
import { finiteFlags } from "./finite-flags.ts";
import { singlePart, exchangeOptions, lossAndGradients, type TrainStep, inUpdateScope } from "./loss-and-gradients.ts";
import { trainedOf, withParameters } from "../building/frozen.ts";
import { modelFigures } from "./model-figures.ts";
import type { Parts, StepKind, TrainState } from "./train-state.ts";
import { updatesBefore } from "./updates-before.ts";
import { noUpdate, updateFigures } from "./update-figures.ts";

/**
 * Computes one training step, from a batch to updated parameters. Traced.
 *
 * A step with a non-finite loss or gradient leaves the state unchanged. All ranks make the same decision, because it
 * depends on values that are equal after the exchange. With a loss scale, a step whose gradients overflow is skipped,
 * and the scale is halved.
 */
export const wholeStep =
  (parts: Parts, { compressor, mode }: StepKind): TrainStep =>
  (state, batch, inputs = singlePart) => {
    const { model, optimizer, lossScale, sharding } = parts;
    const scaling = state.lossScale as LossScaleState;
    const { params } = state;
    const { loss, gradients, modelState, statistics } = lossAndGradients(parts, { params, state }, batch, mode, inputs);
    const [mean, residuals] = exchange(gradients, state.residuals, exchangeOptions(parts, compressor, state));
    return inUpdateScope(() => {
      const curvature = observing(optimizer, state.optimizer, statistics, mode);
      const trained = trainedOf(parts, params);
      const [updates, optimizerState] = optimizer.update(mean, curvature, {
        params: trained,
        ...refreshing(mode),
      });
      const updated = applyUpdates(trained, updates);
      const next: TrainState<Tensor> = {
        ...state,
        params: withParameters(params, updated),
        average: updatedAverage(parts, state.average, updated, add(updatesBefore(parts, state), 1)),
        model: modelState,
        optimizer: optimizerState,
        residuals,
        step: add(state.step, 1),
      };
      const update = updateFigures(parts, mean, state.optimizer, optimizerState);
      const finite = finiteFlags(loss, mean, sharding);
      const sound = all(finite);
      const kept = zipTrees(
        // Tensors that no step changes are not copied.
        (after: Tensor, before: Tensor) => (after === before ? after : where(sound, after, before)),
        next,
        state,
      );
      const figures = modelFigures(model, modelState);
      if (lossScale === undefined) return { state: kept, loss, finite, update, figures, skipped: full([], 0, "bool") };
      const skipped = logicalAnd(
        slice(finite, [0], [1]),
        logicalAnd(logicalNot(sound), greater(scaling.scale, lossScale.minimum)),
      );
      return {
        // A skipped step still counts as completed, so that the next step uses other samples.
        state: { ...kept, lossScale: lossScale.update(scaling, sound), step: next.step },
        loss,
        figures,
        finite: logicalOr(finite, skipped),
        update: where(reshape(skipped, []), fullLike(update, noUpdate), update),
        skipped: reshape(skipped, []),
      };
    });
  };
