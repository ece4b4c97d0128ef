import { emit } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength } from "../shape.ts";
import {
  type AttentionParams,
  attentionSizes,
  attentionSpans,
  firstKey,
  needAttention,
  scoresOf,
  visiblePairs,
} from "./shared/attention-sizes.ts";
import { logSumExp } from "./shared/rows.ts";

/**
 * Attention, `softmax(scale · q kᵀ) v`, with an optional causal mask. Outputs: the result, and for the backward pass
 * the logsumexp of each query's scores (f32, also for 16-bit operands), through which no gradient flows. If all keys of
 * a query are masked, the result of the query is zeros and the logsumexp is −∞.
 *
 * k and v may have fewer heads than q: query head h reads head ⌊h / (heads / key heads)⌋. The optional fourth operand,
 * i32 [2, batch], limits the visible keys: row 0 is the number of keys of each batch entry; row 1, used if `causal`, is
 * the number of keys before the first query. Both rows are clamped to the valid range.
 * Cost: ignores the limits, because their values are known only at run time.
 */
export const attentionOperator: Operator = defineOperator<AttentionParams>({
  name: "attention",
  halfOperands: [0, 1, 2],
  infer: ([q, k, v, limits]) => {
    needAttention(q!, k!, v!, limits);
    return [q!, { dtype: "f32", shape: q!.shape.slice(0, 3) }];
  },
  vjp: ({ inputs: [q, k, v, ...limits], outputs: [out, logSums], cotangents: [g], params }) => [
    ...emit("attention-backward", [q!, k!, v!, out!, logSums!, g!, ...limits], params),
    ...limits.map(() => undefined),
  ],
  cost: (inputs, outputs, params) => ({
    flops: 4 * visiblePairs(inputs, params) * inputs[0]!.shape[3]!,
    bytesRead: inputs.reduce((sum, input) => sum + byteLength(input), 0),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([q, k, v, limits], params) => {
    const sizes = attentionSizes([q!.spec, k!.spec]);
    const { heads, queries, width } = sizes;
    const spans = attentionSpans(sizes, limits?.data);
    const out = new Float64Array(heads * queries * width);
    const logSums = new Float64Array(heads * queries).fill(-Infinity);
    for (let row = 0; row < heads * queries; row++) {
      const scores = scoresOf(row, q!, k!, params, spans);
      if (scores.length === 0) continue;
      logSums[row] = logSumExp(scores);
      const first = firstKey(row, sizes);
      scores.forEach((score, j) => {
        const weight = Math.exp(score - logSums[row]!);
        for (let d = 0; d < width; d++) out[row * width + d]! += weight * v!.data[(first + j) * width + d]!;
      });
    }
    return [out, logSums];
  },
});
