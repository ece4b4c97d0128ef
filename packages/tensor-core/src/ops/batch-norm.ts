import { emit } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { needPerColumn, needRows, rowsOf } from "./shared/rows.ts";

export type BatchNormParams = { readonly epsilon: number };

/**
 * Batch normalization of each channel (last dimension) with the statistics of the batch: `y = (x − mean) / √(variance +
 * ε) · γ + β`. Outputs: y, mean and biased variance. No gradient flows through mean and variance.
 */
export const batchNormOperator: Operator = defineOperator<BatchNormParams>({
  name: "batch-norm",
  layer: () => [{ kind: "norm", input: 0, weight: 1, bias: 2 }],
  infer: ([x, gamma, beta]) => {
    needRows("batch-norm", x!);
    needPerColumn("batch-norm", "gamma", gamma!, x!);
    needPerColumn("batch-norm", "beta", beta!, x!);
    return [x!, gamma!, gamma!];
  },
  vjp: ({ inputs: [x, gamma], outputs: [, mean, variance], cotangents: [g], params: { epsilon } }) =>
    emit("batch-norm-backward", [x!, gamma!, mean!, variance!, g!], { epsilon }),
  cost: ([x], outputs) => ({
    flops: 7 * elementCount(x!.shape),
    bytesRead: 3 * byteLength(x!),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([x, gamma, beta], { epsilon }) => {
    const { rows, width } = rowsOf(x!.spec);
    const mean = new Float64Array(width);
    const variance = new Float64Array(width);
    x!.data.forEach((value, i) => {
      mean[i % width]! += value / rows;
    });
    x!.data.forEach((value, i) => {
      variance[i % width]! += (value - mean[i % width]!) ** 2 / rows;
    });
    const y = x!.data.map((value, i) => {
      const channel = i % width;
      return (
        ((value - mean[channel]!) / Math.sqrt(variance[channel]! + epsilon)) * gamma!.data[channel]! +
        beta!.data[channel]!
      );
    });
    return [y, mean, variance];
  },
});
