import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { exponentialSums, mapRows, needRows } from "./shared/rows.ts";

/** Log-softmax of each row (last dimension): `x − log Σ exp(x)`, computed after subtracting the row's maximum. */
export const logSoftmaxOperator: Operator = defineOperator({
  name: "log-softmax",
  infer: ([x]) => {
    needRows("log-softmax", x!);
    return [x!];
  },
  vjp: ({ outputs: [y], cotangents: [g] }) => [emitOne("log-softmax-backward", [y!, g!])],
  cost: ([x], [out]) => ({
    flops: 5 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: byteLength(out!),
  }),
  reference: ([x]) => [
    mapRows(x!.spec, (_, start, end) => {
      const row = x!.data.subarray(start, end);
      const { max, total } = exponentialSums(row);
      const logTotal = Math.log(total);
      return row.map((value) => value - max - logTotal);
    }),
  ],
});
