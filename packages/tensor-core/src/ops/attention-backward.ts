import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength } from "../shape.ts";
import {
  type AttentionParams,
  attentionSizes,
  attentionSpans,
  firstKey,
  scoresOf,
  visiblePairs,
} from "./shared/attention-sizes.ts";

/**
 * Gradients of `attention` with respect to q, k and v, from the saved result `out`, its cotangent g and the logsumexp:
 * with P = exp(scale·q kᵀ − logsumexp) and δ = Σ g·out for each query, `dv = Pᵀ g`, `dS = P ∘ (g vᵀ − δ)`,
 * `dq = scale · dS k`, `dk = scale · dSᵀ q`; dk and dv are summed over the query heads that share a key head. The
 * gradients of masked keys are 0. The optional operand 6 limits the visible keys, like operand 3 of `attention`.
 *
 * Rounding the logsumexp to f32 scales all weights and gradients of a query by one factor, 1 ± |logsumexp| · 2⁻²⁴,
 * which is at most the effect of rounding the scores. Unlike in `cross-entropy`, nothing is subtracted from the
 * weights, so there is no cancellation, and one saved number per query is enough.
 *
 * Source: Dao et al. 2022, arXiv 2205.14135, algorithm 4.
 */
export const attentionBackwardOperator: Operator = defineOperator<AttentionParams>({
  name: "attention-backward",
  halfOperands: [0, 1, 2, 3, 5],
  infer: ([q, k, v]) => [q!, k!, v!],
  cost: (inputs, outputs, params) => ({
    flops: 10 * visiblePairs(inputs, params) * inputs[0]!.shape[3]!,
    bytesRead: inputs.reduce((sum, input) => sum + byteLength(input), 0),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([q, k, v, out, logSums, g, limits], params) => {
    const sizes = attentionSizes([q!.spec, k!.spec]);
    const { heads, queries, width } = sizes;
    const spans = attentionSpans(sizes, limits?.data);
    const dq = new Float64Array(q!.data.length);
    const dk = new Float64Array(k!.data.length);
    const dv = new Float64Array(v!.data.length);
    for (let row = 0; row < heads * queries; row++) {
      const first = firstKey(row, sizes);
      let delta = 0;
      for (let d = 0; d < width; d++) delta += g!.data[row * width + d]! * out!.data[row * width + d]!;
      scoresOf(row, q!, k!, params, spans).forEach((score, j) => {
        const weight = Math.exp(score - logSums!.data[row]!);
        const key = (first + j) * width;
        let dWeight = 0;
        for (let d = 0; d < width; d++) dWeight += g!.data[row * width + d]! * v!.data[key + d]!;
        const dScore = weight * (dWeight - delta) * params.scale;
        for (let d = 0; d < width; d++) {
          dv[key + d]! += weight * g!.data[row * width + d]!;
          dq[row * width + d]! += dScore * k!.data[key + d]!;
          dk[key + d]! += dScore * q!.data[row * width + d]!;
        }
      });
    }
    return [dq, dk, dv];
  },
});
