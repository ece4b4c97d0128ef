import { attentionSizes, type AttentionSizes, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import type { BlasRow } from "./blas-row.ts";
import type { Contraction } from "./blas.ts";

type AttentionNode = KernelNode<OperatorParams["attention"]>;

/**
 * Scores that are in memory at a time, 256 KiB of them: written by one product, they are near when the next reads them.
 */
const scoreValues = 2 ** 16;
/** Queries of a block, at least: with fewer a product is mostly the library's packing of keys. */
const fewestQueries = 16;

const blockOf = ({ queries, keys }: AttentionSizes): number =>
  Math.min(queries, Math.max(fewestQueries, Math.floor(scoreValues / Math.max(1, keys))));

/**
 * @param operands without limits, which differ by batch entry at run time: whole products would compute what they hide.
 */
const contraction =
  (op: "attention" | "attention-backward", operands: number) =>
  ({ inputs, params }: AttentionNode): Contraction | undefined => {
    if (inputs.length > operands) return undefined;
    const { queries, keys, width } = attentionSizes(inputs);
    return { op, variant: params.causal ? "causal" : "full", rows: queries, columns: keys, inner: width };
  };

/** Keys that any query of a block sees: the last one sees the most. */
const seenBy = ({ queries, keys }: AttentionSizes, causal: boolean, first: number, count: number): number =>
  causal ? Math.max(0, Math.min(keys, first + count + keys - queries)) : keys;

/** softmax(scale · q kᵀ) v by whole rows of scores, a block of queries at a time. Scratch: the scores of a block. */
export const blasAttention: BlasRow<OperatorParams["attention"]> = {
  contraction: contraction("attention", 3),
  kernel: (sgemm) => ({
    op: "attention",
    scratchBytes: ({ inputs }) => 4 * blockOf(attentionSizes(inputs)) * attentionSizes(inputs).keys,
    bind: ({ inputs, params: { causal, scale } }, wasm) => {
      const sizes = attentionSizes(inputs);
      const { heads, group, queries, keys, width } = sizes;
      const block = blockOf(sizes);
      const weigh = wasm["attentionWeights"]!;
      const fill = wasm["fill32"]!;
      return ([q, k, v], [out, logSums], scores) => {
        for (let head = 0; head < heads; head++) {
          const ofKeys = 4 * Math.floor(head / group) * keys * width; // of one head for the group that shares it
          const [keysAt, valuesAt] = [k! + ofKeys, v! + ofKeys];
          for (let first = 0; first < queries; first += block) {
            const count = Math.min(block, queries - first);
            const wide = seenBy(sizes, causal, first, count);
            const row = head * queries + first;
            const [query, result] = [q! + 4 * row * width, out! + 4 * row * width];
            if (wide > 0)
              sgemm(0, 1, count, wide, width, scale, query, width, keysAt, width, 0, scores, wide, 1, 0, 0, 0);
            weigh(scores, logSums! + 4 * row, count, wide, Number(causal), queries - keys - first);
            if (wide > 0)
              sgemm(0, 0, count, width, wide, 1, scores, wide, valuesAt, width, 0, result, width, 1, 0, 0, 0);
            else fill(result, 0, count * width);
          }
        }
      };
    },
  }),
};

/**
 * Gradients of attention: the weights of each block of queries are computed anew from the logsumexp.
 * Scratch: weights of a block, their gradients, and δ = Σ g · out of all queries of a head.
 */
export const blasAttentionBackward: BlasRow<OperatorParams["attention-backward"]> = {
  contraction: contraction("attention-backward", 6),
  kernel: (sgemm) => ({
    op: "attention-backward",
    scratchBytes: ({ inputs }) => {
      const sizes = attentionSizes(inputs);
      return 4 * (2 * blockOf(sizes) * sizes.keys + sizes.queries);
    },
    bind: ({ inputs, params: { causal, scale } }, wasm) => {
      const sizes = attentionSizes(inputs);
      const { heads, group, queries, keys, width } = sizes;
      const block = blockOf(sizes);
      const deltas = wasm["attentionDeltas"]!;
      const differentiate = wasm["attentionWeightGradients"]!;
      const fill = wasm["fill32"]!;
      return ([q, k, v, out, logSums, g], [dq, dk, dv], weights) => {
        const gradients = weights + 4 * block * keys;
        const delta = gradients + 4 * block * keys;
        // What no query sees keeps its zeros; the rest is summed over blocks of queries, and heads that share keys.
        fill(dk!, 0, (heads / group) * keys * width);
        fill(dv!, 0, (heads / group) * keys * width);
        for (let head = 0; head < heads; head++) {
          const [ofKeys, ofQueries] = [4 * Math.floor(head / group) * keys * width, 4 * head * queries * width];
          deltas(delta, g! + ofQueries, out! + ofQueries, queries, width);
          for (let first = 0; first < queries; first += block) {
            const count = Math.min(block, queries - first);
            const wide = seenBy(sizes, causal, first, count);
            const at = ofQueries + 4 * first * width;
            if (wide === 0) {
              fill(dq! + at, 0, count * width);
              continue;
            }
            const [query, gradient, key, value] = [q! + at, g! + at, k! + ofKeys, v! + ofKeys];
            sgemm(0, 1, count, wide, width, 1, query, width, key, width, 0, weights, wide, 1, 0, 0, 0);
            sgemm(0, 1, count, wide, width, 1, gradient, width, value, width, 0, gradients, wide, 1, 0, 0, 0);
            const sums = logSums! + 4 * (head * queries + first);
            differentiate(
              weights,
              gradients,
              sums,
              delta + 4 * first,
              count,
              wide,
              Number(causal),
              queries - keys - first,
              scale,
            );
            sgemm(1, 0, wide, width, count, 1, weights, wide, gradient, width, 1, dv! + ofKeys, width, 1, 0, 0, 0);
            sgemm(1, 0, wide, width, count, 1, gradients, wide, query, width, 1, dk! + ofKeys, width, 1, 0, 0, 0);
            sgemm(0, 0, count, width, wide, 1, gradients, wide, key, width, 0, dq! + at, width, 1, 0, 0, 0);
          }
        }
      };
    },
  }),
};
