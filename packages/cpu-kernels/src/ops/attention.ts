import { ATTENTION_TILE } from "../../assembly/attention-blocks.ts";
import { attentionArguments, attentionScratch } from "../attention-sizes.ts";
import { type Kernel, kernelOf } from "../kernel.ts";

export const attentionKernel: Kernel = kernelOf({
  op: "attention",
  // Scores, packed keys and values, one maximum per query of a tile.
  scratchBytes: (node) => attentionScratch(node, { squares: 1, panels: 2, words: ATTENTION_TILE }),
  bind: (node, wasm) => {
    const attention = wasm["attention"]!;
    const numbers = attentionArguments(node);
    return ([q, k, v, limits = 0], [out, logSums], scratch) =>
      void attention(out!, logSums!, q!, k!, v!, limits, ...numbers, scratch);
  },
});
