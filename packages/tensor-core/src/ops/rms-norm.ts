import { emit } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { mapRows, needPerColumn, needRows, rowsOf } from "./shared/rows.ts";

export type RmsNormParams = { readonly epsilon: number };

/**
 * Root-mean-square normalization of each row: `y = x · rstd · γ` with rstd = 1/√(mean x² + ε). Outputs: y, and rstd of
 * each row for the backward pass. No gradient flows through rstd.
 */
export const rmsNormOperator: Operator = defineOperator<RmsNormParams>({
  name: "rms-norm",
  layer: () => [{ kind: "norm", input: 0, weight: 1 }],
  infer: ([x, gamma]) => {
    needRows("rms-norm", x!);
    needPerColumn("rms-norm", "gamma", gamma!, x!);
    return [x!, { dtype: "f32", shape: x!.shape.slice(0, -1) }];
  },
  vjp: ({ inputs: [x, gamma], outputs: [, rstd], cotangents: [g] }) =>
    emit("rms-norm-backward", [x!, gamma!, rstd!, g!]),
  cost: ([x], outputs) => ({
    flops: 4 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([x, gamma], { epsilon }) => {
    const { rows, width } = rowsOf(x!.spec);
    const rstd = new Float64Array(rows);
    const y = mapRows(x!.spec, (row, start, end) => {
      const values = x!.data.subarray(start, end);
      rstd[row] = 1 / Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / width + epsilon);
      return values.map((value, i) => value * rstd[row]! * gamma!.data[i]!);
    });
    return [y, rstd];
  },
});
