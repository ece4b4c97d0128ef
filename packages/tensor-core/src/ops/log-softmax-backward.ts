import { exp, multiply, negate, subtract } from "../functions/elementwise.ts";
import { sum } from "../functions/reduce.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { mapRows, needRows } from "./shared/rows.ts";

/**
 * Gradient of `log-softmax`, computed from its result y: `g − exp(y) · Σ g`, where g is the cotangent of y and the sum
 * is over each row.
 */
export const logSoftmaxBackwardOperator: Operator = defineOperator({
  name: "log-softmax-backward",
  infer: ([y]) => {
    needRows("log-softmax-backward", y!);
    return [y!];
  },
  vjp: ({ inputs: [y, g], cotangents: [c] }) => {
    const weighted = multiply(c!, exp(y!));
    return [
      negate(multiply(weighted, sum(g!, { dims: -1, keepDims: true }))),
      subtract(c!, sum(weighted, { dims: -1, keepDims: true })),
    ];
  },
  cost: ([y, g], [out]) => ({
    flops: 4 * elementCount(y!.shape),
    bytesRead: byteLength(y!) + byteLength(g!),
    bytesWritten: byteLength(out!),
  }),
  reference: ([y, g]) => [
    mapRows(y!.spec, (_, start, end) => {
      const gradient = g!.data.subarray(start, end);
      const total = gradient.reduce((partial, value) => partial + value, 0);
      return gradient.map((value, i) => value - Math.exp(y!.data[start + i]!) * total);
    }),
  ],
});
