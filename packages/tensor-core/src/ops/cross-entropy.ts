import { ShapeError } from "../errors.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import { exponentialSums } from "./shared/rows.ts";

/**
 * Cross-entropy loss of each row, `logsumexp(logits) − logits[label]`, for logits f32 [N, C] and labels i32 [N]. A
 * label out of range gives NaN. Outputs: losses, and for the backward pass the maximum m and `Σ exp(logits − m)` of
 * each row, through which no gradient flows. Two numbers are saved, because a single f32 logsumexp loses the digits of
 * the sum if m is large.
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
        `got logits ${formatSpec(logits!)} and labels ${formatSpec(labels!)}, expected f32[N, C] and i32[N]; reshape or cast them`,
      );
    }
    const perRow = { dtype: "f32" as const, shape: [logits!.shape[0]!] };
    return [perRow, perRow, perRow];
  },
  vjp: ({ inputs: [logits, labels], outputs: [, maxima, totals], cotangents: [g] }) => [
    emitOne("cross-entropy-backward", [logits!, labels!, maxima!, totals!, g!]),
    undefined,
  ],
  cost: ([logits, labels], [losses]) => ({
    flops: 4 * elementCount(logits!.shape),
    bytesRead: byteLength(logits!) + byteLength(labels!),
    bytesWritten: 3 * byteLength(losses!),
  }),
  reference: ([logits, labels]) => {
    const [rows, classes] = logits!.spec.shape as [number, number];
    const maxima = new Float64Array(rows);
    const totals = new Float64Array(rows);
    const losses = maxima.map((_, row) => {
      const entries = logits!.data.subarray(row * classes, (row + 1) * classes);
      const { max, total } = exponentialSums(entries);
      maxima[row] = max;
      totals[row] = total;
      const label = labels!.data[row]!;
      return label >= 0 && label < classes ? max - entries[label]! + Math.log(total) : NaN;
    });
    return [losses, maxima, totals];
  },
});
