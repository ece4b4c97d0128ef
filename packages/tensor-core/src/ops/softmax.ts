import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { exponentialSums, mapRows, needRows } from "./shared/rows.ts";

/** Softmax of each row (last dimension): `exp(x − max x) / Σ exp(x − max x)`. */
export const softmaxOperator: Operator = defineOperator({
  name: "softmax",
  infer: ([x]) => {
    needRows("softmax", x!);
    return [x!];
  },
  vjp: ({ outputs: [y], cotangents: [g] }) => [emitOne("softmax-backward", [y!, g!])],
  cost: ([x], [out]) => ({
    flops: 5 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: byteLength(out!),
  }),
  reference: ([x]) => [
    mapRows(x!.spec, (_, start, end) => {
      const row = x!.data.subarray(start, end);
      const { max, total } = exponentialSums(row);
      return row.map((value) => Math.exp(value - max) / total);
    }),
  ],
});
