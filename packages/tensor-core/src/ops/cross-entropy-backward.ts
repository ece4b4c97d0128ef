import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";

/**
 * Gradient of `cross-entropy` with respect to the logits: for each row, `(softmax(logits) − onehot(label)) · g`, where
 * g is the cotangent of the row's loss, and softmax = exp(logits − m) / total. Here, m and total are the saved maximum
 * and sum of exponentials. The gradient of a row whose label is out of range is NaN.
 */
export const crossEntropyBackwardOperator: Operator = defineOperator({
  name: "cross-entropy-backward",
  infer: ([logits]) => [logits!],
  cost: (inputs, [out]) => ({
    flops: 4 * elementCount(out!.shape),
    bytesRead: inputs.reduce((sum, input) => sum + byteLength(input), 0),
    bytesWritten: byteLength(out!),
  }),
  reference: ([logits, labels, maxima, totals, g]) => {
    const classes = logits!.spec.shape[1]!;
    return [
      logits!.data.map((value, i) => {
        const row = Math.floor(i / classes);
        const label = labels!.data[row]!;
        if (label < 0 || label >= classes) return NaN;
        return (
          (Math.exp(value - maxima!.data[row]!) / totals!.data[row]! - (i % classes === label ? 1 : 0)) * g!.data[row]!
        );
      }),
    ];
  },
});
