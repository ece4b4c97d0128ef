import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { rowsOf } from "./shared/rows.ts";

export type BatchNormBackwardParams = { readonly epsilon: number };

/**
 * Gradients of `batch-norm`: with rstd = 1 / √(variance + ε), x̂ = (x − mean)·rstd and the cotangent g of y,
 * `dβ = Σ g`, `dγ = Σ g·x̂`, `dx = γ · rstd · (g − dβ/N − x̂ · dγ/N)`, with sums over the N values of each channel.
 */
export const batchNormBackwardOperator: Operator = defineOperator<BatchNormBackwardParams>({
  name: "batch-norm-backward",
  infer: ([x, gamma]) => [x!, gamma!, gamma!],
  cost: ([x, , , , g], outputs) => ({
    flops: 11 * elementCount(x!.shape),
    bytesRead: 2 * byteLength(x!) + 2 * byteLength(g!),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([x, gamma, mean, variance, g], { epsilon }) => {
    const { rows, width } = rowsOf(x!.spec);
    const rstd = variance!.data.map((value) => 1 / Math.sqrt(value + epsilon));
    const normal = x!.data.map((value, i) => (value - mean!.data[i % width]!) * rstd[i % width]!);
    const dGamma = new Float64Array(width);
    const dBeta = new Float64Array(width);
    g!.data.forEach((value, i) => {
      dGamma[i % width]! += value * normal[i]!;
      dBeta[i % width]! += value;
    });
    const dx = g!.data.map((value, i) => {
      const channel = i % width;
      return (
        gamma!.data[channel]! *
        rstd[channel]! *
        (value - dBeta[channel]! / rows - (normal[i]! * dGamma[channel]!) / rows)
      );
    });
    return [dx, dGamma, dBeta];
  },
});
