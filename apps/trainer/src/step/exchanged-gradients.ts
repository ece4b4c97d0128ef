import { type Aggregator, exchange } from "@skein/compressors";
import type { BatchTree } from "../task/task.ts";
import type { Tensor } from "@skein/tensor-core";
import { exchangeOptions, lossAndGradients, type StepInputs } from "./loss-and-gradients.ts";
import type { Parts, TrainState } from "./train-state.ts";

/**
 * The gradients of a step as its optimizer gets them: means over the ranks, or what these have agreed upon in their
 * place, without the scale of the loss. Traced; of a state with nothing on its way, of which nothing is changed.
 *
 * @returns a tree like that of the trained parameters.
 */
export const exchangedGradients =
  (parts: Parts, compressor: Aggregator) =>
  (state: TrainState<Tensor>, batch: BatchTree, inputs: StepInputs<Tensor>): unknown => {
    const { gradients } = lossAndGradients(parts, { params: state.params, state }, batch, "keep", inputs);
    const [mean] = exchange(gradients, state.residuals, exchangeOptions(parts, compressor, state));
    return mean;
  };
