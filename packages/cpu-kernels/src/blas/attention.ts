import { attentionSizes, type AttentionSizes, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import { alignUp } from "../arena.ts";
import { attentionNanoseconds } from "../attention-sizes.ts";
import { type Call, partBegin } from "../team/team.ts";
import type { BlasRow } from "./blas-row.ts";
import type { Contraction } from "../blas.ts";

type AttentionNode = KernelNode<OperatorParams["attention"]>;

/**
 * Number of scores in memory at a time, 256 KiB. The scores stay in the cache between the product that writes them and
 * the product that reads them.
 */
const scoreValues = 2 ** 16;
/**
 * Minimum number of queries per block. With fewer queries, a product would spend most of its time on the library's
 * packing of keys.
 */
const minQueries = 16;

const blockOf = ({ queries, keys }: AttentionSizes): number =>
  Math.min(queries, Math.max(minQueries, Math.floor(scoreValues / Math.max(1, keys))));

/**
 * Returns the contraction of an attention node, or undefined if the node has limits. With limits, the number of keys is
 * known only at run time and differs by batch entry, and whole products would compute hidden scores.
 *
 * @param operands Number of operands of a node without limits.
 */
const contraction =
  (op: "attention" | "attention-backward", operands: number) =>
  ({ inputs, params }: AttentionNode): Contraction | undefined => {
    if (inputs.length > operands) return undefined;
    const { queries, keys, width } = attentionSizes(inputs);
    return { op, variant: params.causal ? "causal" : "full", rows: queries, columns: keys, inner: width };
  };

/**
 * Returns the number of keys that at least one query of a block attends to. The last query attends to the most keys.
 */
const seenBy = ({ queries, keys }: AttentionSizes, causal: boolean, first: number, count: number): number =>
  causal ? Math.max(0, Math.min(keys, first + count + keys - queries)) : keys;

/** Returns the bytes of the scores of one block, which each thread needs. */
const scoreBytes = (sizes: AttentionSizes): number => alignUp(4 * blockOf(sizes) * sizes.keys);

/**
 * Computes softmax(scale · q kᵀ) v with a BLAS. For one block of queries at a time, the scores for all keys are
 * computed before the softmax.
 */
export const blasAttention: BlasRow<OperatorParams["attention"]> = {
  contraction: contraction("attention", 3),
  kernel: () => ({
    op: "attention",
    scratchBytes: ({ inputs }, threads) => threads * scoreBytes(attentionSizes(inputs)),
    bind: (node, _, __, team) => {
      const { causal, scale } = node.params;
      const sizes = attentionSizes(node.inputs);
      const { heads, group, queries, keys, width } = sizes;
      const block = blockOf(sizes);
      const sgemm = team.indexOf("sgemm");
      const weigh = team.indexOf("attentionWeights");
      const fill = team.indexOf("fill32");
      const parts = team.partsOf(attentionNanoseconds(node, 2), heads);
      const headResults = (
        part: number,
        call: Call,
        [q, k, v]: Int32Array,
        [out, logSums]: Int32Array,
        scores: number,
      ) => {
        for (let head = partBegin(heads, part, parts); head < partBegin(heads, part + 1, parts); head++) {
          const keyOffset = 4 * Math.floor(head / group) * keys * width; // byte offset of the keys that a group shares
          const [keysAt, valuesAt] = [k! + keyOffset, v! + keyOffset];
          for (let first = 0; first < queries; first += block) {
            const count = Math.min(block, queries - first);
            const wide = seenBy(sizes, causal, first, count);
            const row = head * queries + first;
            const [query, result] = [q! + 4 * row * width, out! + 4 * row * width];
            if (wide > 0)
              call(sgemm, 0, 1, count, wide, width, scale, query, width, keysAt, width, 0, scores, wide, 1, 0, 0, 0);
            call(weigh, scores, logSums! + 4 * row, count, wide, Number(causal), queries - keys - first);
            if (wide > 0)
              call(sgemm, 0, 0, count, width, wide, 1, scores, wide, valuesAt, width, 0, result, width, 1, 0, 0, 0);
            else call(fill, result, 0, count * width);
          }
        }
      };
      return (inputs, outputs, scratch) =>
        team.run(parts, (part, call) => headResults(part, call, inputs, outputs, scratch + part * scoreBytes(sizes)));
    },
  }),
};

/**
 * Returns the scratch bytes of one thread: the weights of a query block, their gradients, and δ = Σ g · out for each
 * query of a head.
 */
const gradientBytes = (sizes: AttentionSizes): number => alignUp(4 * (2 * blockOf(sizes) * sizes.keys + sizes.queries));

/** Computes the gradients of attention. The weights of each block of queries are recomputed from the logsumexp. */
export const blasAttentionBackward: BlasRow<OperatorParams["attention-backward"]> = {
  contraction: contraction("attention-backward", 6),
  kernel: () => ({
    op: "attention-backward",
    scratchBytes: ({ inputs }, threads) => threads * gradientBytes(attentionSizes(inputs)),
    bind: (node, _, __, team) => {
      const { causal, scale } = node.params;
      const sizes = attentionSizes(node.inputs);
      const { heads, group, queries, keys, width } = sizes;
      const block = blockOf(sizes);
      const sgemm = team.indexOf("sgemm");
      const deltas = team.indexOf("attentionDeltas");
      const differentiate = team.indexOf("attentionWeightGradients");
      const fill = team.indexOf("fill32");
      // The gradients of keys and values are sums over the heads that share them.
      const groups = heads / group;
      const parts = team.partsOf(attentionNanoseconds(node, 5), groups);
      const groupGradients = (
        part: number,
        call: Call,
        [q, k, v, out, logSums, g]: Int32Array,
        [dq, dk, dv]: Int32Array,
        weights: number,
      ): void => {
        const [begin, end] = [partBegin(groups, part, parts), partBegin(groups, part + 1, parts)];
        const gradients = weights + 4 * block * keys;
        const delta = gradients + 4 * block * keys;
        // The gradients of keys that no query attends to stay zero. All other gradients are sums over blocks of queries
        // and over heads that share keys.
        call(fill, dk! + 4 * begin * keys * width, 0, (end - begin) * keys * width);
        call(fill, dv! + 4 * begin * keys * width, 0, (end - begin) * keys * width);
        for (let head = group * begin; head < group * end; head++) {
          const [keyOffset, queryOffset] = [4 * Math.floor(head / group) * keys * width, 4 * head * queries * width];
          call(deltas, delta, g! + queryOffset, out! + queryOffset, queries, width);
          for (let first = 0; first < queries; first += block) {
            const count = Math.min(block, queries - first);
            const wide = seenBy(sizes, causal, first, count);
            const at = queryOffset + 4 * first * width;
            if (wide === 0) {
              call(fill, dq! + at, 0, count * width);
              continue;
            }
            const [query, gradient, key, value] = [q! + at, g! + at, k! + keyOffset, v! + keyOffset];
            call(sgemm, 0, 1, count, wide, width, 1, query, width, key, width, 0, weights, wide, 1, 0, 0, 0);
            call(sgemm, 0, 1, count, wide, width, 1, gradient, width, value, width, 0, gradients, wide, 1, 0, 0, 0);
            const sums = logSums! + 4 * (head * queries + first);
            call(
              differentiate,
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
            call(
              sgemm,
              1,
              0,
              wide,
              width,
              count,
              1,
              weights,
              wide,
              gradient,
              width,
              1,
              dv! + keyOffset,
              width,
              1,
              0,
              0,
              0,
            );
            call(
              sgemm,
              1,
              0,
              wide,
              width,
              count,
              1,
              gradients,
              wide,
              query,
              width,
              1,
              dk! + keyOffset,
              width,
              1,
              0,
              0,
              0,
            );
            call(sgemm, 0, 0, count, width, wide, 1, gradients, wide, key, width, 0, dq! + at, width, 1, 0, 0, 0);
          }
        }
      };
      return (inputs, outputs, scratch) =>
        team.run(parts, (part, call) =>
          groupGradients(part, call, inputs, outputs, scratch + part * gradientBytes(sizes)),
        );
    },
  }),
};
