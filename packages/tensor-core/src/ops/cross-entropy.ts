import { ShapeError } from "../errors.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import { logSumExp } from "./rows.ts";

/**
 * Losses `logsumexp(logits) − logits[label]` of each row, and the logsumexp itself for the backward pass (no gradient flows through that second
 * output). Logits f32 [N, C], labels i32 [N]; a label outside the classes gives NaN.
 */
export const crossEntropyOperator: Operator = defineOperator({
  name: "cross-entropy",
  infer: ([logits, labels]) => {
    if (
      logits!.dtype !== "f32" ||
      logits!.shape.length !== 2 ||
      labels!.dtype !== "i32" ||
      labels!.shape.length !== 1 ||
      labels!.shape[0] !== logits!.shape[0]
    ) {
      throw new ShapeError(
        "cross-entropy",
        `logits ${formatSpec(logits!)} and labels ${formatSpec(labels!)} were given; it takes f32[N, C] and i32[N]`,
      );
    }
    const perRow = { dtype: "f32" as const, shape: [logits!.shape[0]!] };
    return [perRow, perRow];
  },
  vjp: ({ inputs: [logits, labels], outputs: [, logSums], cotangents: [g] }) => [
    emitOne("cross-entropy-backward", [logits!, labels!, logSums!, g!]),
    undefined,
  ],
  cost: ([logits, labels], [losses]) => ({
    flops: 4 * elementCount(logits!.shape),
    bytesRead: byteLength(logits!) + byteLength(labels!),
    bytesWritten: 2 * byteLength(losses!),
  }),
  reference: ([logits, labels]) => {
    const [rows, classes] = logits!.spec.shape as [number, number];
    const logSums = Float64Array.from({ length: rows }, (_, row) => logSumExp(logits!.data.subarray(row * classes, (row + 1) * classes)));
    const losses = logSums.map((logSum, row) => {
      const label = labels!.data[row]!;
      return label >= 0 && label < classes ? logSum - logits!.data[row * classes + label]! : NaN;
    });
    return [losses, logSums];
  },
});
