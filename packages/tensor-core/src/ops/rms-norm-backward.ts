import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { mapRows, rowsOf } from "./shared/rows.ts";

/**
 * Gradients of `rms-norm`: with the cotangent g of y, x̂ = x·rstd and h = g·γ, `dx = rstd · (h − x̂ · Σ(h·x̂)/D)` with
 * the sum over each row of D entries, and `dγ = Σ g·x̂` with the sum over all rows.
 */
export const rmsNormBackwardOperator: Operator = defineOperator({
  name: "rms-norm-backward",
  infer: ([x, gamma]) => [x!, gamma!],
  cost: ([x, , , g], outputs) => ({
    flops: 9 * elementCount(x!.shape),
    bytesRead: byteLength(x!) + byteLength(g!),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([x, gamma, rstd, g]) => {
    const { width } = rowsOf(x!.spec);
    const dGamma = new Float64Array(width);
    const dx = mapRows(x!.spec, (row, start, end) => {
      const gradient = g!.data.subarray(start, end);
      const normal = x!.data.subarray(start, end).map((value) => value * rstd!.data[row]!);
      const h = gradient.map((value, i) => value * gamma!.data[i]!);
      const meanHN = h.reduce((sum, value, i) => sum + value * normal[i]!, 0) / width;
      gradient.forEach((value, i) => {
        dGamma[i]! += value * normal[i]!;
      });
      return h.map((value, i) => rstd!.data[row]! * (value - normal[i]! * meanHN));
    });
    return [dx, dGamma];
  },
});
