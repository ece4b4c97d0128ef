import { multiply, subtract } from "../functions/elementwise.ts";
import { sum } from "../functions/reduce.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { mapRows, needRows } from "./shared/rows.ts";

/**
 * Gradient of `softmax`, computed from its result y: `y · (g − Σ g·y)`, where g is the cotangent of y and the sum is
 * over each row.
 */
export const softmaxBackwardOperator: Operator = defineOperator({
  name: "softmax-backward",
  infer: ([y]) => {
    needRows("softmax-backward", y!);
    return [y!];
  },
  vjp: ({ inputs: [y, g], cotangents: [c] }) => {
    const rowSum = (a: typeof g, b: typeof g): NonNullable<typeof g> =>
      sum(multiply(a!, b!), { dims: -1, keepDims: true });
    return [
      subtract(multiply(c!, subtract(g!, rowSum(g, y))), multiply(g!, rowSum(c, y))),
      emitOne("softmax-backward", [y!, c!]),
    ];
  },
  cost: ([y, g], [out]) => ({
    flops: 4 * elementCount(y!.shape),
    bytesRead: byteLength(y!) + byteLength(g!),
    bytesWritten: byteLength(out!),
  }),
  reference: ([y, g]) => [
    mapRows(y!.spec, (_, start, end) => {
      const [row, gradient] = [y!.data.subarray(start, end), g!.data.subarray(start, end)];
      const dot = row.reduce((total, value, i) => total + value * gradient[i]!, 0);
      return row.map((value, i) => value * (gradient[i]! - dot));
    }),
  ],
});
