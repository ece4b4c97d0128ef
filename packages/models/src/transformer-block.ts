// Shapes: B batch, T positions, D width, F hidden width of the feed-forward layer.
import { add, foldIn, scope, type Tensor } from "@skein/tensor-core";
import { applyLayerNorm, initLayerNorm, type NormParams } from "./normalisation.ts";
import type { Past } from "./past.ts";
import { initProjection, project, type Projection } from "./projection.ts";
import { runBlock, type Recompute } from "./recompute.ts";
import { residualDeviation } from "./transformer-sizes.ts";

/** Parameters of a block: attention and a feed-forward layer of two matrices, each with a layer norm. */
export interface TransformerBlockParams<Attention> {
  readonly attentionNorm: NormParams;
  readonly attention: Attention;
  readonly feedForwardNorm: NormParams;
  /** Up projection of the feed-forward layer, [D, F]. */
  readonly up: Projection;
  /** Down projection of the feed-forward layer, [F, D]. */
  readonly down: Projection;
}

export interface TransformerBlockOptions<Attention> {
  readonly attend: (params: Attention, x_BTD: Tensor) => Tensor;
  readonly activation: (x: Tensor) => Tensor;
  /** ε of the layer norms. */
  readonly epsilon: number;
  /**
   * Position of the norms. `before`: the input of each branch is normalized (GPT-2, ViT). `after`: the sum after each
   * branch is normalized (BERT).
   */
  readonly norms: "before" | "after";
}

export const initTransformerBlock = <Attention>(
  key: Tensor,
  { width, hidden, numLayers }: { readonly width: number; readonly hidden: number; readonly numLayers: number },
  initAttention: (key: Tensor, deviation: number) => Attention,
): TransformerBlockParams<Attention> => {
  const deviation = residualDeviation(numLayers);
  return {
    attentionNorm: initLayerNorm(width),
    attention: initAttention(foldIn(key, 0), deviation),
    feedForwardNorm: initLayerNorm(width),
    up: initProjection(foldIn(key, 1), [width, hidden], { bias: true }),
    down: initProjection(foldIn(key, 2), [hidden, width], { bias: true, deviation }),
  };
};

const applyBlock = <Attention>(
  block: TransformerBlockParams<Attention>,
  x_BTD: Tensor,
  { attend, activation, epsilon, norms }: TransformerBlockOptions<Attention>,
): Tensor => {
  const normed = (norm: NormParams, x: Tensor): Tensor => applyLayerNorm(norm, x, epsilon);
  const residual = (name: string, norm: NormParams, x: Tensor, branch: (x: Tensor) => Tensor): Tensor =>
    scope(name, () => (norms === "before" ? add(x, branch(normed(norm, x))) : normed(norm, add(x, branch(x)))));
  const y_BTD = residual("attention", block.attentionNorm, x_BTD, (x) => attend(block.attention, x));
  return residual("feed-forward", block.feedForwardNorm, y_BTD, (y) =>
    project(block.down, activation(project(block.up, y))),
  );
};

/** Applies blocks in sequence: [B, T, D] to [B, T, D]. */
export const applyTransformerBlocks = <Attention>(
  blocks: readonly TransformerBlockParams<Attention>[],
  x_BTD: Tensor,
  options: TransformerBlockOptions<Attention>,
  recompute: Recompute,
  past?: Past,
): Tensor =>
  blocks.reduce(
    (x, block, layer) => scope(`block-${layer}`, () => runBlock(recompute, () => applyBlock(block, x, options), past)),
    x_BTD,
  );
