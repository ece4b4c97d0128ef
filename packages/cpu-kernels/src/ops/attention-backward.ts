import { attentionArguments, attentionScratch } from "../attention-sizes.ts";
import { type Kernel, kernelOf } from "../kernel.ts";

export const attentionBackwardKernel: Kernel = kernelOf({
  op: "attention-backward",
  // Weights and their gradients; keys and values packed for the sums over the width, keys, queries and gradients for
  // those over positions; δ.
  scratchBytes: (node) => attentionScratch(node, { squares: 2, panels: 5, words: node.inputs[0]!.shape[2]! }),
  bind: (node, wasm) => {
    const attentionBackward = wasm["attentionBackward"]!;
    const numbers = attentionArguments(node);
    return ([q, k, v, out, logSums, g, limits = 0], [dq, dk, dv], scratch) =>
      void attentionBackward(dq!, dk!, dv!, q!, k!, v!, out!, logSums!, g!, limits, ...numbers, scratch);
  },
});
