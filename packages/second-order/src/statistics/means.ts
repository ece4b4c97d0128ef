import { add, concat, full, multiply } from "@skein/tensor-core";
import { rowCount, type SideStatistic, type Statistic } from "./statistic.ts";

const inputMean: SideStatistic = (layer, rows) => {
  const total = rows.map((one) => one.total()).reduce((sum, one) => add(sum, one));
  const mean = multiply(total, 1 / rowCount(rows));
  return layer.bias === undefined ? mean : concat([mean, full([1], 1)]);
};

const gradientMean: SideStatistic = (_, rows, { meanOver }) => {
  const total = rows.map((one) => one.total()).reduce((sum, one) => add(sum, one));
  return multiply(total, meanOver / rowCount(rows));
};

/**
 * Means over samples and positions: inputs of a layer, `ā` [inputs], with 1 for the bias, and output gradients, `ḡ`
 * [outputs].
 *
 * Patches of a convolution are never created: the mean patch consists of the mean per tap of the mean image.
 *
 * Cost: one read of inputs and output gradients; `inputs + outputs` numbers sent.
 * @example
 * ```ts
 * console.log(meanStatistic.degree); // 1
 * ```
 * Source: Zhang et al. 2023 (Eva), ICLR.
 */
export const meanStatistic: Statistic = {
  degree: 1,
  input: inputMean,
  gradient: gradientMean,
  shapeOf: (layer, side) => [side === "input" ? layer.numInputs : layer.numOutputs],
};

/** Mean of a layer's inputs, without gradients. Source: Zhang et al. 2023 (Eva-f). */
export const inputMeanStatistic: Statistic = { degree: 1, input: inputMean, shapeOf: meanStatistic.shapeOf };
