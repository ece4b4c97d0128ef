// Shapes: B batch, T positions, D width, K experts per token.
import { add, ArgumentError, cast, foldIn, full, mapTree, type Tensor, zerosLike } from "@skein/tensor-core";
import { applyTrunk, decoder, type DecoderParts } from "./decoder.ts";
import type {
  FeedForwardLayer,
  FeedForwardReport,
  GptExperts,
  GptExpertsState,
  GptParams,
  GptState,
} from "./gpt-options.ts";
import { lossResult } from "./loss-sum.ts";
import type { MicrobatchStates, Model } from "./model.ts";
import type { Branch } from "./transformer-block.ts";

/** State of an expert layer after a forward pass, and the layer's report, such as its loss term and metrics. */
export interface ExpertsApplied {
  readonly own: unknown;
  readonly report: FeedForwardReport;
}

const stored = ({ own, report: { loss, figures, sums = {} } }: ExpertsApplied): GptExpertsState => ({
  own,
  report: { loss, figures, sums },
});

/** Initializes parameters and state of a layer. @param key Key of the block. */
const initLayer = (layer: FeedForwardLayer, key: Tensor): ReturnType<FeedForwardLayer["init"]> =>
  layer.init(foldIn(key, 7));

/** Returns the initial state of a layer, and a report in which all values are zero. @param key Key of the block. */
const initState = (layer: FeedForwardLayer, width: number, key: Tensor): GptExpertsState => {
  const { params, state } = initLayer(layer, key);
  // `apply` is traced only to get the shapes of the report; its result is never executed.
  const [, , report] = layer.apply(params, state, full([1, 1, width], 0), { train: false, key });
  return stored({ own: state, report: mapTree(report, (leaf: Tensor) => zerosLike(leaf)) as FeedForwardReport });
};

/**
 * Returns a branch that applies an expert layer.
 * @param at Index of the layer in the model's state.
 * @param use Integer that is folded into the key of each call.
 */
const expertsBranch = (
  layer: FeedForwardLayer,
  apply: FeedForwardLayer["apply"],
  at: number,
  use: number,
): Branch<{ readonly experts?: unknown }, ExpertsApplied> => ({
  name: "experts",
  init: (key) => ({ experts: initLayer(layer, key).params }),
  apply: (params, x_BTD, { state, keyLengths: _, whole, key, ...context }) => {
    const sums = (whole?.state as GptState | undefined)?.experts![at]!.report.sums;
    const [y_BTD, own, report] = apply(params.experts, (state as GptState).experts![at]!.own, x_BTD, {
      ...context,
      ...(key && { key: foldIn(key, use) }),
      ...(sums && { whole: { sums, numParts: whole!.numParts } }),
    });
    return [y_BTD, { own, report }];
  },
});

type ExpertParts = DecoderParts<GptParams, GptState, ExpertsApplied>;

/** Replaces the feed-forward branch of the blocks with indices `layers` by an expert layer. */
const withExperts = (
  parts: ExpertParts,
  layers: readonly number[],
  layer: FeedForwardLayer,
  apply: FeedForwardLayer["apply"],
): ExpertParts => {
  const { blocks, embedding, firstBlockKey } = parts;
  const numDrops = 2 * blocks.length + 1;
  const changed = [...blocks];
  for (const [at, i] of layers.entries())
    changed[i] = { ...blocks[i]!, feedForward: expertsBranch(layer, apply, at, numDrops + i) };
  return {
    ...parts,
    blocks: changed,
    states: {
      init: (key) => ({
        experts: layers.map((i) => initState(layer, embedding.width, foldIn(key, firstBlockKey + i))),
      }),
      next: (applied) => ({ experts: applied.map(stored) }),
    },
  };
};

/** Returns the state of the model after one more microbatch, with the joined states of the expert layers. */
const joinStates = (layer: FeedForwardLayer, parts: MicrobatchStates<GptState>): GptState => {
  const { before, earlier, own, numEarlier } = parts;
  const applied = ({ own: state, report }: GptExpertsState) => ({ state, report });
  const experts = before.experts!.map((block, i) => {
    const { state, report } = layer.joinParts!({
      before: block.own,
      earlier: applied(earlier.experts![i]!),
      own: applied(own.experts![i]!),
      numEarlier: cast(numEarlier, "f32"),
    });
    return stored({ own: state, report });
  });
  return { experts };
};

/**
 * Creates a decoder in which some blocks have an expert layer instead of the feed-forward branch. The auxiliary losses
 * of the layers are added to the training loss, and their metrics appear in `figures`.
 *
 * @param apply Replaces `layer.apply`. Default: `layer.apply`.
 */
export const expertDecoder = (
  plain: ExpertParts,
  { layer, every, sharding }: GptExperts,
  apply: FeedForwardLayer["apply"] = (...call) => layer.apply(...call),
): Model<GptParams, GptState> => {
  const layers = [...plain.blocks.keys()].filter((i) => (i + 1) % every === 0);
  const parts = withExperts(plain, layers, layer, apply);
  const model = decoder(parts);
  return {
    ...model,
    loss: (params, state, batch, context) => {
      const result = model.loss(params, state, batch, context);
      if (!context.train) return result;
      const [, next, ofRows] = result;
      const auxiliary = next.experts!.map(({ report }) => report.loss).reduce((sum, loss) => add(sum, loss));
      return lossResult({ ...ofRows!, auxiliary }, next);
    },
    ...(layer.joinParts !== undefined && {
      needsWhole: layer.needsWhole ?? false,
      joinParts: (states) => joinStates(layer, states),
    }),
    ...(sharding !== undefined && {
      sharding: (path) => {
        const [, name] = /^blocks\.\d+\.experts\.(.*)$/.exec(path) ?? [];
        return name === undefined ? [] : sharding(name);
      },
    }),
    experts: {
      layers: layers.map((i, at) => ({
        name: `block-${i}`,
        params: `blocks.${i}.experts`,
        state: `experts.${at}.own`,
      })),
      choices: (params, state, inputs, context) => {
        const [, ...applied] = applyTrunk(parts, params, inputs, { ...context, state });
        return applied.map(({ report: { choices_TK } }, at) => {
          if (choices_TK === undefined)
            throw new ArgumentError(
              `gpt: the experts of block ${layers[at]} mix all tokens and make no choices; request choices only of a layer with routing`,
            );
          return choices_TK;
        });
      },
    },
    figures: ({ experts }) =>
      Object.fromEntries(
        experts!.flatMap(({ report: { loss, figures } }, at) =>
          Object.entries({ ...figures, auxiliaryLoss: loss }).map(([name, value]) => [
            `block-${layers[at]}.${name}`,
            value as Tensor,
          ]),
        ),
      ),
  };
};
