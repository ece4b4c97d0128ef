import { type Aggregator, exchange } from "@skein/compressors";
import type { BatchTree } from "../task/task.ts";
import type { Tensor } from "@skein/tensor-core";
import { exchangeOptions, lossAndGradients, type StepInputs } from "./loss-and-gradients.ts";
import type { Parts, TrainState } from "./train-state.ts";

/**
 * Computes the gradients of a step as its optimizer receives them: means over the ranks, or the compressed result of
 * the exchange, without the loss scale. Traced. The state must have no pending gradients and is not changed.
 *
 * @returns a tree with the structure of the trained parameters.
 */
export const exchangedGradients =
  (parts: Parts, compressor: Aggregator) =>
  (state: TrainState<Tensor>, batch: BatchTree, inputs: StepInputs<Tensor>): unknown => {
    const { gradients } = lossAndGradients(parts, { params: state.params, state }, batch, "keep", inputs);
    const [mean] = exchange(gradients, state.residuals, exchangeOptions(parts, compressor, state));
    return mean;
  };
