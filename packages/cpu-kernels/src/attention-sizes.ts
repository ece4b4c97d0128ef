import type { KernelNode } from "./kernel.ts";

/** Sizes and options as both attention kernels take them: heads, queries, keys, width, causal, scale. */
export const attentionArguments = ({ inputs, params }: KernelNode): readonly number[] => {
  const [batch, heads, queries, width] = inputs[0]!.shape as [number, number, number, number];
  return [batch * heads, queries, inputs[1]!.shape[2]!, width, params["causal"] === true ? 1 : 0, params["scale"] as number];
};

/** Row addresses and edge tile of the tile product; see HEAD_BYTES in assembly/attention.ts. */
const headBytes = 288;

/** Scratch bytes: squares of 64 × 64 scores, panels of 64 rows of the width (rounded up to whole panels of 8 columns), and further words. */
export const attentionScratch = ({ inputs }: KernelNode, { squares, panels, words }: { squares: number; panels: number; words: number }): number => {
  const width = Math.ceil(inputs[0]!.shape[3]! / 8) * 8;
  return headBytes + squares * 4 * 64 * 64 + panels * 4 * 64 * width + 4 * words;
};
