import type { KernelNode, OperatorParams } from "@skein/tensor-core";
import { ATTENTION_TILE } from "../assembly/attention-blocks.ts";
import { PRODUCT_HEAD_BYTES, TILE_COLUMNS } from "../assembly/blocks.ts";

/** Sizes and options of attention. Heads are those of all samples. */
export interface AttentionSizes {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly width: number;
  readonly causal: boolean;
  readonly scale: number;
}

export const attentionSizes = ({ inputs, params }: KernelNode<OperatorParams["attention"]>): AttentionSizes => {
  const [batch, heads, queries, width] = inputs[0]!.shape as [number, number, number, number];
  return { heads: batch * heads, queries, keys: inputs[1]!.shape[2]!, width, causal: params.causal, scale: params.scale };
};

/** Sizes and options as both attention kernels take them: heads, queries, keys, width, causal, scale. */
export const attentionArguments = (node: KernelNode<OperatorParams["attention"]>): readonly number[] => {
  const { heads, queries, keys, width, causal, scale } = attentionSizes(node);
  return [heads, queries, keys, width, causal ? 1 : 0, scale];
};

/** Scratch bytes: squares of scores, tiles of positions × width (rounded up to whole panels of columns), and further words. */
export const attentionScratch = (
  { inputs }: KernelNode,
  { squares, panels, words }: { squares: number; panels: number; words: number },
): number => {
  const width = Math.ceil(inputs[0]!.shape[3]! / TILE_COLUMNS) * TILE_COLUMNS;
  return PRODUCT_HEAD_BYTES + 4 * ATTENTION_TILE * (squares * ATTENTION_TILE + panels * width) + 4 * words;
};
