// Shapes: B batch, T positions, D width, V vocabulary.
import { type EmptyState, scope, type Tensor } from "@skein/tensor-core";
import { labelledModel, type Model } from "./model.ts";
import type { Outputs } from "./residual-connection.ts";
import {
  type EmbeddingOptions,
  type EmbeddingParams,
  embedTokens,
  initTokens,
  tokenLogits,
} from "./token-embedding.ts";
import {
  applyBlocks,
  type BlockContext,
  type BlockParams,
  type BlockStack,
  initBlocks,
  stackDefaults,
} from "./transformer-block.ts";

/** Parameters of a decoder. */
export interface DecoderParams extends EmbeddingParams {
  readonly blocks: readonly BlockParams[];
  readonly finalNorm: unknown;
}

/**
 * Parts of a decoder-only transformer: embedding, blocks of norm, attention, norm and feed-forward branch, final norm,
 * head. No part depends on parallelism. `tensorParallelDecoder`, `expertDecoder` and `recomputed` replace parts.
 *
 * @typeParam Further Additional results of the branches, such as new states.
 */
export interface DecoderParts<Params extends DecoderParams = DecoderParams, State = EmptyState, Further = never>
  extends BlockStack<Params["blocks"][number], Further> {
  /** Throws an error if the shape of the tokens does not fit the model. */
  requireTokens(tokens: Tensor): void;
  readonly embedding: EmbeddingOptions;
  /**
   * Integer that is folded into the model's key to initialize the first block; each following block uses the next
   * integer.
   */
  readonly firstBlockKey: number;
  /** Selects the positions that this rank computes. @param x Tensor of all positions, along `dim`. */
  ownPositions(x: Tensor, dim: number): Tensor;
  /** Selects the positions for which the head computes logits, from the hidden states [B, T, D]. */
  headPositions(x_BTD: Tensor): Tensor;
  /**
   * Functions that compute the blocks' state. `init` returns the initial state. `next` returns the state after a call
   * of the model, from the additional results of the branches. Absent: the state of the model is empty.
   */
  readonly states?: { init(key: Tensor): State; next(further: readonly Further[]): State };
}

/**
 * Default parts of a decoder: each rank computes all positions, the head computes logits for all positions, and the
 * blocks have the parts of `stackDefaults`.
 */
export const decoderDefaults: typeof stackDefaults & Pick<DecoderParts, "ownPositions" | "headPositions"> = {
  ...stackDefaults,
  ownPositions: (x) => x,
  headPositions: (x) => x,
};

/** Applies embedding and blocks: tokens [B, T] to [B, T, D]. Also returns the additional results of all branches. */
export const applyTrunk = <Params extends DecoderParams, State, Further>(
  parts: DecoderParts<Params, State, Further>,
  params: Params,
  tokens_BT: Tensor,
  context: BlockContext,
): Outputs<Further> => {
  parts.requireTokens(tokens_BT);
  const x_BTD = scope("embedding", () =>
    parts.drop(embedTokens(params, tokens_BT, context.past, parts.ownPositions), parts.dropoutRate, context, 0),
  );
  return applyBlocks(parts, params.blocks, x_BTD, context);
};

/** Creates a model from parts. */
export const decoder = <Params extends DecoderParams, State = EmptyState, Further = never>(
  parts: DecoderParts<Params, State, Further>,
): Model<Params, State> =>
  labelledModel({
    init: (key) => {
      const params: DecoderParams = {
        ...initTokens(key, parts.embedding),
        blocks: initBlocks(parts, key, parts.firstBlockKey),
        finalNorm: parts.norm.init(),
      };
      return { params: params as Params, state: parts.states?.init(key) ?? ({} as State) };
    },
    apply: (params, state, tokens_BT, context) => {
      const [x_BTD, ...further] = applyTrunk(parts, params, tokens_BT, { ...context, state });
      const own_BTD = parts.headPositions(x_BTD);
      const logits_BTV = scope("head", () => tokenLogits(params, parts.norm.apply(params.finalNorm, own_BTD)));
      return [logits_BTV, parts.states?.next(further) ?? state];
    },
  });
