import { emit } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { mapRows, needPerColumn, needRows, rowsOf } from "./shared/rows.ts";

export type LayerNormParams = { readonly epsilon: number };

/**
 * Layer normalization of each row: `y = (x − mean) · rstd · γ + β` with rstd = 1/√(variance + ε). Outputs: y, and mean
 * and rstd of each row for the backward pass. No gradient flows through mean and rstd.
 */
export const layerNormOperator: Operator = defineOperator<LayerNormParams>({
  name: "layer-norm",
  layer: () => [{ kind: "norm", input: 0, weight: 1, bias: 2 }],
  infer: ([x, gamma, beta]) => {
    needRows("layer-norm", x!);
    needPerColumn("layer-norm", "gamma", gamma!, x!);
    needPerColumn("layer-norm", "beta", beta!, x!);
    const perRow = { dtype: "f32" as const, shape: x!.shape.slice(0, -1) };
    return [x!, perRow, perRow];
  },
  vjp: ({ inputs: [x, gamma], outputs: [, mean, rstd], cotangents: [g] }) =>
    emit("layer-norm-backward", [x!, gamma!, mean!, rstd!, g!]),
  cost: ([x], outputs) => ({
    flops: 8 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([x, gamma, beta], { epsilon }) => {
    const { rows, width } = rowsOf(x!.spec);
    const mean = new Float64Array(rows);
    const rstd = new Float64Array(rows);
    const y = mapRows(x!.spec, (row, start, end) => {
      const values = x!.data.subarray(start, end);
      mean[row] = values.reduce((sum, value) => sum + value, 0) / width;
      rstd[row] = 1 / Math.sqrt(values.reduce((sum, value) => sum + (value - mean[row]!) ** 2, 0) / width + epsilon);
      return values.map((value, i) => (value - mean[row]!) * rstd[row]! * gamma!.data[i]! + beta!.data[i]!);
    });
    return [y, mean, rstd];
  },
});
