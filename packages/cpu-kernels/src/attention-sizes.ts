import { attentionSizes, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import { ATTENTION_TILE } from "../assembly/attention-blocks.ts";
import { PRODUCT_HEAD_BYTES, TILE_COLUMNS } from "../assembly/blocks.ts";

/**
 * Sizes and options as both attention kernels take them: batch, heads, heads that share a key, queries, keys, width,
 * causal, scale.
 */
export const attentionArguments = ({ inputs, params }: KernelNode<OperatorParams["attention"]>): readonly number[] => {
  const { batch, headsEach, group, queries, keys, width } = attentionSizes(inputs);
  return [batch, headsEach, group, queries, keys, width, params.causal ? 1 : 0, params.scale];
};

/**
 * Scratch bytes: squares of scores, tiles of positions × width (rounded up to whole panels of columns), and further
 * words.
 */
export const attentionScratch = (
  { inputs }: KernelNode,
  { squares, panels, words }: { squares: number; panels: number; words: number },
): number => {
  const width = Math.ceil(inputs[0]!.shape[3]! / TILE_COLUMNS) * TILE_COLUMNS;
  return PRODUCT_HEAD_BYTES + 4 * ATTENTION_TILE * (squares * ATTENTION_TILE + panels * width) + 4 * words;
};
