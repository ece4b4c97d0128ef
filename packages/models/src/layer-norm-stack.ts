import { feedForwardBranch, type FeedForwardParams } from "./feed-forward.ts";
import { layerNormPart, type NormParams } from "./normalisation.ts";
import { recomputed } from "./recompute.ts";
import type { Connection } from "./residual-connection.ts";
import { type BlockParams, type BlockStack, type Branch, stackDefaults } from "./transformer-block.ts";
import { type LayerNormTransformerOptions, residualDeviation } from "./transformer-sizes.ts";

/** Parameters of a block with layer norms and two matrices in the feed-forward branch. */
export interface TransformerBlockParams<Attention> extends BlockParams<NormParams>, FeedForwardParams {
  readonly attention: Attention;
}

/** Returns a stack of transformer blocks with layer norms and biases, as in GPT-2, BERT and vision transformers. */
export const layerNormStack = <Attention>(
  { width, numLayers, hidden, activation, epsilon, recompute }: Required<LayerNormTransformerOptions>,
  attention: Branch<{ readonly attention: Attention }>,
  connect: Connection = stackDefaults.connect,
): BlockStack<TransformerBlockParams<Attention>> => {
  const sizes = { width, hidden, bias: true, deviation: residualDeviation(numLayers) };
  const block = { attention, feedForward: feedForwardBranch(sizes, activation) };
  const blocks = Array.from({ length: numLayers }, () => block);
  return recomputed({ ...stackDefaults, blocks, norm: layerNormPart(width, epsilon), connect }, recompute);
};
