import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { mapRows, rowsOf } from "./shared/rows.ts";

/**
 * Gradients of `layer-norm`: with the cotangent g of y, x̂ = (x − mean)·rstd and h = g·γ,
 * `dx = rstd · (h − Σh/D − x̂ · Σ(h·x̂)/D)` with sums over each row of D entries, and `dγ = Σ g·x̂`, `dβ = Σ g` with
 * sums over all rows. Backends may correct the rounding error of the saved mean by adding the mean of x − mean.
 */
export const layerNormBackwardOperator: Operator = defineOperator({
  name: "layer-norm-backward",
  infer: ([x, gamma]) => [x!, gamma!, gamma!],
  cost: ([x, , , , g], outputs) => ({
    flops: 13 * elementCount(x!.shape),
    bytesRead: byteLength(x!) + byteLength(g!),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([x, gamma, mean, rstd, g]) => {
    const { width } = rowsOf(x!.spec);
    const dGamma = new Float64Array(width);
    const dBeta = new Float64Array(width);
    const dx = mapRows(x!.spec, (row, start, end) => {
      const gradient = g!.data.subarray(start, end);
      const normal = x!.data.subarray(start, end).map((value) => (value - mean!.data[row]!) * rstd!.data[row]!);
      const h = gradient.map((value, i) => value * gamma!.data[i]!);
      const [meanH, meanHN] = [
        h.reduce((sum, value) => sum + value, 0) / width,
        h.reduce((sum, value, i) => sum + value * normal[i]!, 0) / width,
      ];
      gradient.forEach((value, i) => {
        dGamma[i]! += value * normal[i]!;
        dBeta[i]! += value;
      });
      return h.map((value, i) => rstd!.data[row]! * (value - meanH - normal[i]! * meanHN));
    });
    return [dx, dGamma, dBeta];
  },
});
