import { ATTENTION_TILE } from "../../assembly/attention-blocks.ts";
import { attentionSizes, type KernelNode } from "@skein/tensor-core/backend";
import { attentionArguments, attentionNanoseconds, attentionScratch } from "../attention-sizes.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { partBegin } from "../team/team.ts";

// Returns the scratch bytes of one part: scores, packed keys and values, one maximum per query of a tile.
const scratchOf = (node: KernelNode): number =>
  attentionScratch(node, { squares: 1, panels: 2, words: ATTENTION_TILE });

/** Computes attention. Threads share the heads of all batch entries. */
export const attentionKernel: Kernel = kernelOf({
  op: "attention",
  scratchBytes: (node, threads) => threads * scratchOf(node),
  bind: (node, _, __, team) => {
    const attention = team.indexOf("attention");
    const numbers = attentionArguments(node);
    const bytesEach = scratchOf(node);
    const { heads } = attentionSizes(node.inputs);
    const parts = team.partsOf(attentionNanoseconds(node, 2), heads);
    return ([q, k, v, limits = 0], [out, logSums], scratch) =>
      team.run(parts, (part, call) => {
        const [first, last] = [partBegin(heads, part, parts), partBegin(heads, part + 1, parts)];
        call(attention, out!, logSums!, q!, k!, v!, limits, ...numbers, scratch + part * bytesEach, first, last);
      });
  },
});
