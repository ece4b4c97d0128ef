import { ShapeError } from "../errors.ts";
import { emit } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, formatShape, formatSpec, sameShape } from "../shape.ts";
import { type AttentionParams, attentionSizes, scoresOf, visiblePairs } from "./shared/attention-sizes.ts";
import { logSumExp } from "./shared/rows.ts";

/**
 * `softmax(scale · q kᵀ) v` with an optional causal mask. Outputs the result and the logsumexp of each query's scores (f32, also where the operands are f16) for the backward pass,
 * through which no gradient flows. A query that sees no key yields zeros and −∞.
 */
export const attentionOperator: Operator = defineOperator<AttentionParams>({
  name: "attention",
  halfOperands: [0, 1, 2],
  infer: ([q, k, v]) => {
    const [a, b] = [q!.shape, k!.shape];
    const dtypes = [q!, k!, v!].map(({ dtype }) => dtype);
    if (
      dtypes.some((dtype) => (dtype !== "f32" && dtype !== "f16") || dtype !== dtypes[0]) ||
      [q!, k!, v!].some(({ shape }) => shape.length !== 4)
    ) {
      throw new ShapeError(
        "attention",
        `${formatSpec(q!)}, ${formatSpec(k!)} and ${formatSpec(v!)} were given; it takes [batch, heads, positions, width], all f32 or all f16`,
      );
    }
    if (!sameShape(b, v!.shape) || a[0] !== b[0] || a[1] !== b[1] || a[3] !== b[3]) {
      throw new ShapeError(
        "attention",
        `q ${formatShape(a)}, k ${formatShape(b)} and v ${formatShape(v!.shape)} do not fit: k and v have one shape, and only positions may differ from q's`,
      );
    }
    return [q!, { dtype: "f32", shape: a.slice(0, 3) }];
  },
  vjp: ({ inputs: [q, k, v], outputs: [out, logSums], cotangents: [g], params }) =>
    emit("attention-backward", [q!, k!, v!, out!, logSums!, g!], params),
  cost: (inputs, outputs, params) => ({
    flops: 4 * visiblePairs(inputs, params) * inputs[0]!.shape[3]!,
    bytesRead: inputs.reduce((sum, input) => sum + byteLength(input), 0),
    bytesWritten: outputs.reduce((sum, output) => sum + byteLength(output), 0),
  }),
  reference: ([q, k, v], params) => {
    const { heads, queries, keys, width } = attentionSizes([q!.spec, k!.spec]);
    const out = new Float64Array(heads * queries * width);
    const logSums = new Float64Array(heads * queries).fill(-Infinity);
    for (let row = 0; row < heads * queries; row++) {
      const scores = scoresOf(row, q!, k!, params);
      if (scores.length === 0) continue;
      logSums[row] = logSumExp(scores);
      const first = Math.floor(row / queries) * keys;
      scores.forEach((score, j) => {
        const weight = Math.exp(score - logSums[row]!);
        for (let d = 0; d < width; d++) out[row * width + d]! += weight * v!.data[(first + j) * width + d]!;
      });
    }
    return [out, logSums];
  },
});
