import type { KernelNode, OperatorParams } from "@skein/tensor-core";
import { ATTENTION_TILE } from "../assembly/attention-blocks.ts";
import { PRODUCT_HEAD_BYTES, TILE_COLUMNS } from "../assembly/blocks.ts";

/** Sizes and options as both attention kernels take them: heads, queries, keys, width, causal, scale. */
export const attentionArguments = ({ inputs, params }: KernelNode<OperatorParams["attention"]>): readonly number[] => {
  const [batch, heads, queries, width] = inputs[0]!.shape as [number, number, number, number];
  return [batch * heads, queries, inputs[1]!.shape[2]!, width, params.causal ? 1 : 0, params.scale];
};

/** Scratch bytes: squares of scores, tiles of positions × width (rounded up to whole panels of columns), and further words. */
export const attentionScratch = (
  { inputs }: KernelNode,
  { squares, panels, words }: { squares: number; panels: number; words: number },
): number => {
  const width = Math.ceil(inputs[0]!.shape[3]! / TILE_COLUMNS) * TILE_COLUMNS;
  return PRODUCT_HEAD_BYTES + 4 * ATTENTION_TILE * (squares * ATTENTION_TILE + panels * width) + 4 * words;
};
