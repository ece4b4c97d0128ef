import { attentionSizes, type KernelNode } from "@skein/tensor-core/backend";
import { attentionArguments, attentionNanoseconds, attentionScratch } from "../attention-sizes.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { partBegin } from "../team/team.ts";

/**
 * Returns the scratch bytes of one part: weights and their gradients; two operands packed for sums over the width
 * (keys, values); three operands packed for sums over positions (keys, queries, gradients); δ.
 */
const scratchOf = (node: KernelNode): number =>
  attentionScratch(node, { squares: 2, panels: 5, words: node.inputs[0]!.shape[2]! });

/**
 * Computes the gradients of attention. Threads share groups of heads with common keys, because the gradients of keys
 * are sums over the group.
 */
export const attentionBackwardKernel: Kernel = kernelOf({
  op: "attention-backward",
  scratchBytes: (node, threads) => threads * scratchOf(node),
  bind: (node, _, __, team) => {
    const attentionBackward = team.indexOf("attentionBackward");
    const numbers = attentionArguments(node);
    const bytesEach = scratchOf(node);
    const { heads, group } = attentionSizes(node.inputs);
    const groups = heads / group;
    const parts = team.partsOf(attentionNanoseconds(node, 5), groups);
    return ([q, k, v, out, logSums, g, limits = 0], [dq, dk, dv], scratch) => {
      const operands = [dq!, dk!, dv!, q!, k!, v!, out!, logSums!, g!, limits];
      team.run(parts, (part, call) => {
        const [first, last] = [group * partBegin(groups, part, parts), group * partBegin(groups, part + 1, parts)];
        call(attentionBackward, ...operands, ...numbers, scratch + part * bytesEach, first, last);
      });
    };
  },
});
