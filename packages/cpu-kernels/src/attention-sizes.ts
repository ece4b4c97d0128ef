import { attentionSizes, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import { ATTENTION_TILE } from "../assembly/attention-blocks.ts";
import { alignUp } from "./arena.ts";
import { multiplyAddNanoseconds } from "./contraction-scratch.ts";
import { PRODUCT_HEAD_BYTES, TILE_COLUMNS } from "../assembly/blocks.ts";

/**
 * Returns the sizes and options of attention in the order that both attention kernels expect: batch, heads, heads that
 * share a key, queries, keys, width, causal, scale.
 */
export const attentionArguments = ({ inputs, params }: KernelNode<OperatorParams["attention"]>): readonly number[] => {
  const { batch, headsEach, group, queries, keys, width } = attentionSizes(inputs);
  return [batch, headsEach, group, queries, keys, width, params.causal ? 1 : 0, params.scale];
};

/**
 * Returns the scratch bytes that one thread needs for attention: `squares` score tiles, `panels` packed tiles of
 * positions × width (rounded up to complete panels), and `words` additional words.
 */
export const attentionScratch = (
  { inputs }: KernelNode,
  { squares, panels, words }: { squares: number; panels: number; words: number },
): number => {
  const width = Math.ceil(inputs[0]!.shape[3]! / TILE_COLUMNS) * TILE_COLUMNS;
  return alignUp(PRODUCT_HEAD_BYTES + 4 * ATTENTION_TILE * (squares * ATTENTION_TILE + panels * width) + 4 * words);
};

/**
 * Estimates the nanoseconds of attention in one thread, for `products` matrix products over queries, keys and width.
 */
export const attentionNanoseconds = (
  { inputs, params }: KernelNode<OperatorParams["attention"]>,
  products: number,
): number => {
  const { heads, queries, keys, width } = attentionSizes(inputs);
  return (multiplyAddNanoseconds * products * heads * queries * keys * width) / (params.causal ? 2 : 1);
};
