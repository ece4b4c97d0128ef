// Shapes: B batch, T positions, D width, H heads, K head width (D / H), F hidden width of the feed-forward part, V
// vocabulary. A suffix names the dimensions of a tensor in order: x_BTD.
import {
  add,
  ArgumentError,
  attention,
  cast,
  embedding,
  foldIn,
  full,
  gelu,
  mapTree,
  matmul,
  multiply,
  normal,
  reshape,
  rotary,
  scope,
  ShapeError,
  type Sharding,
  silu,
  slice,
  type Tensor,
  transpose,
  zerosLike,
} from "@skein/tensor-core";
import { dropWhileTraining, initEmbedding } from "./layers.ts";
import { labelledModel, type Model, type RunContext } from "./model.ts";
import {
  applyLayerNorm,
  applyRmsNorm,
  initLayerNorm,
  initRmsNorm,
  type NormParams as LayerNormParams,
  type RmsNormParams,
} from "./normalisation.ts";
import { asBlock, type Recompute } from "./recompute.ts";

export interface GptOptions {
  /** Number of tokens; 256 for bytes, the default. */
  readonly vocabulary?: number;
  /** Most positions that a sequence may have; learned positions need it, rotary ones do not. */
  readonly contextLength: number;
  /** D */
  readonly width: number;
  readonly numLayers: number;
  /** H; must divide the width. */
  readonly numHeads: number;
  /** Default: rotary. */
  readonly positions?: "rotary" | "learned";
  /** Default: rms. */
  readonly norm?: "rms" | "layer";
  /** Default: gelu. */
  readonly activation?: "gelu" | "swiglu";
  /**
   * F. Default: 4D for gelu; for swiglu, which has three matrices instead of two, 8D/3 rounded up to a multiple of 8.
   */
  readonly hidden?: number;
  /** Use the embedding as the matrix of the logits too. Default: true. */
  readonly tiedHead?: boolean;
  /** Share of the embedding's and of each branch's values dropped while training. Default: 0. */
  readonly dropoutRate?: number;
  /**
   * `blocks` keeps what enters each block for the backward pass and computes the rest of it again: see `checkpoint`.
   * Default: none.
   */
  readonly recompute?: Recompute;
  /** What takes the place of the feed-forward part in some blocks. Default: nothing. */
  readonly experts?: GptExperts;
}

/** A layer in place of a feed-forward part, from [B, T, D] to the same. It may have a state, and add to the loss. */
export interface FeedForwardLayer<Params = unknown, State = unknown> {
  init(key: Tensor): { readonly params: Params; readonly state: State };
  apply(
    params: Params,
    state: State,
    x: Tensor,
    context: RunContext,
  ): readonly [y: Tensor, state: State, report: FeedForwardReport];
}

export interface FeedForwardReport {
  /** f32 [], added to the loss while training. */
  readonly loss: Tensor;
  /** f32, numbers worth following. */
  readonly figures: object;
  /** i32 [T, K]: which experts each token chose, where it is a choice. Not kept. */
  readonly choices_TK?: Tensor;
}

export interface GptExperts {
  /** Such as `moeLayer` of @skein/moe-parallel. */
  readonly layer: FeedForwardLayer;
  /** Blocks from one that has it to the next; the last block of so many has it. 1 for all blocks. */
  readonly every: number;
  /** How parameters of the layer are shared out, by path in its tree. Default: every rank has everything. */
  readonly sharding?: Sharding;
}

/** What a layer of experts was left with by the last step. */
export interface GptExpertsState {
  readonly own: unknown;
  readonly report: Omit<FeedForwardReport, "choices_TK">;
}

export interface GptState {
  /** Of the blocks that have experts, in order. */
  readonly experts?: readonly GptExpertsState[];
}

/** The shift of layer normalisation only. */
type NormParams = RmsNormParams & Partial<LayerNormParams>;

export interface GptBlockParams {
  readonly attentionNorm: NormParams;
  readonly query_DD: Tensor;
  readonly key_DD: Tensor;
  readonly value_DD: Tensor;
  readonly output_DD: Tensor;
  readonly feedForwardNorm: NormParams;
  /** In place of the three matrices below, in blocks that have experts. */
  readonly experts?: unknown;
  readonly up_DF?: Tensor;
  /** SwiGLU only. */
  readonly gate_DF?: Tensor;
  readonly down_FD?: Tensor;
}

export interface GptParams {
  readonly embedding_VD: Tensor;
  /** Learned positions only. */
  readonly positions_TD?: Tensor;
  readonly blocks: readonly GptBlockParams[];
  readonly finalNorm: NormParams;
  /** Untied head only. */
  readonly head_DV?: Tensor;
}

/** What a layer of experts leaves behind. */
interface ExpertsApplied {
  readonly own: unknown;
  readonly report: FeedForwardReport;
}

const needPositive = (options: Readonly<Record<string, number>>): void => {
  for (const [name, value] of Object.entries(options)) {
    if (!Number.isInteger(value) || value < 1)
      throw new ArgumentError(`gpt: ${name} is ${value}; use an integer from 1`);
  }
};

/**
 * A decoder-only transformer over bytes (or other small tokens): normalisation before each branch, causal attention,
 * feed-forward part, no biases in the matrices. Inputs i32 or u8 [B, T], labels [B, T]: the inputs one position later.
 *
 * Weights start normal with deviation 0.02, those that write to the residual stream with 0.02 / √(2·layers), as in
 * GPT-2.
 *
 * Parameters: `VD + L·(4D² + 2DF + norms)`, with SwiGLU `3DF` for `2DF`; plus `TD` with learned positions and `DV` with
 * an untied head. Forward flops per token: about twice the matrix parameters, plus `4·T·D` per layer for attention.
 * With `experts` some blocks have a layer of theirs in place of the feed-forward part; what it adds to the loss is in
 * the loss while training, and what it reports in `figures`.
 *
 * @throws ArgumentError when sizes are not positive integers, the heads do not divide the width, or no block would have
 * experts.
 * Source: Radford et al. 2019 (GPT-2); Su et al. 2021, arXiv 2104.09864 (rotary); Shazeer 2020, arXiv 2002.05202
 * (SwiGLU).
 */
export const gpt = (options: GptOptions): Model<GptParams, GptState> => {
  const {
    vocabulary = 256,
    contextLength,
    width,
    numLayers,
    numHeads,
    positions = "rotary",
    norm = "rms",
    activation = "gelu",
    tiedHead = true,
    dropoutRate = 0,
    recompute = "none",
    experts,
  } = options;
  const hidden = options.hidden ?? (activation === "gelu" ? 4 * width : 8 * Math.ceil(width / 3));
  needPositive({ vocabulary, contextLength, width, numLayers, numHeads, hidden });
  if (width % numHeads !== 0)
    throw new ArgumentError(
      `gpt: ${numHeads} heads do not divide the width ${width}; choose a width that is a multiple of the heads`,
    );
  if (experts !== undefined && (!Number.isInteger(experts.every) || experts.every < 1 || experts.every > numLayers))
    throw new ArgumentError(
      `gpt: experts in every block of ${experts.every} were asked for, with ${numLayers} blocks; use 1 to ${numLayers}`,
    );
  const headWidth = width / numHeads;
  const hasExperts = (layer: number): boolean => experts !== undefined && (layer + 1) % experts.every === 0;
  const expertLayers = Array.from({ length: numLayers }, (_, layer) => layer).filter(hasExperts);
  if (positions === "rotary" && headWidth % 2 !== 0)
    throw new ArgumentError(
      `gpt: rotary positions turn pairs of values, but a head of ${width} / ${numHeads} = ${headWidth} values is odd; use an even head width or learned positions`,
    );

  const initNorm = (): NormParams => (norm === "layer" ? initLayerNorm(width) : initRmsNorm(width));
  const normalise = ({ gain, shift }: NormParams, x: Tensor): Tensor =>
    shift === undefined ? applyRmsNorm({ gain }, x) : applyLayerNorm({ gain, shift }, x);

  const initFeedForward = (
    weight: (id: number, numIn: number, numOut: number, deviation: number) => Tensor,
    inner: number,
    residual: number,
  ): Pick<GptBlockParams, "up_DF" | "gate_DF" | "down_FD"> => ({
    up_DF: weight(4, width, hidden, inner),
    ...(activation === "swiglu" && { gate_DF: weight(5, width, hidden, inner) }),
    down_FD: weight(6, hidden, width, residual),
  });

  const initBlock = (key: Tensor, layer: number): GptBlockParams => {
    const inner = 0.02;
    const residual = inner / Math.sqrt(2 * numLayers);
    const weight = (id: number, numIn: number, numOut: number, deviation: number): Tensor =>
      normal(foldIn(key, id), [numIn, numOut], { deviation });
    return {
      attentionNorm: initNorm(),
      query_DD: weight(0, width, width, inner),
      key_DD: weight(1, width, width, inner),
      value_DD: weight(2, width, width, inner),
      output_DD: weight(3, width, width, residual),
      feedForwardNorm: initNorm(),
      ...(hasExperts(layer)
        ? { experts: experts!.layer.init(foldIn(key, 7)).params }
        : initFeedForward(weight, inner, residual)),
    };
  };

  /** The state of a layer of experts before the first step, with a report of zeros. */
  const initExperts = (key: Tensor): GptExpertsState => {
    const { params, state } = experts!.layer.init(foldIn(key, 7));
    // Only the shapes are asked for: what gives them is never run.
    const [, , report] = experts!.layer.apply(params, state, full([1, 1, width], 0), { train: false, key });
    return kept({ own: state, report: mapTree(report, (leaf: Tensor) => zerosLike(leaf)) as FeedForwardReport });
  };

  const kept = ({ own, report: { loss, figures } }: ExpertsApplied): GptExpertsState => ({
    own,
    report: { loss, figures },
  });

  const attend = (block: GptBlockParams, x_BTD: Tensor): Tensor => {
    const [numRows, length] = x_BTD.shape as [number, number, number];
    const heads = (weight_DD: Tensor): Tensor =>
      transpose(reshape(matmul(x_BTD, weight_DD), [numRows, length, numHeads, headWidth]), [0, 2, 1, 3]);
    const turn = (x_BHTK: Tensor): Tensor => (positions === "rotary" ? rotary(x_BHTK) : x_BHTK);
    const y_BHTK = attention(turn(heads(block.query_DD)), turn(heads(block.key_DD)), heads(block.value_DD), {
      causal: true,
    });
    return matmul(reshape(transpose(y_BHTK, [0, 2, 1, 3]), [numRows, length, width]), block.output_DD);
  };

  const feedForward = (block: GptBlockParams, x_BTD: Tensor): Tensor => {
    const up_BTF = matmul(x_BTD, block.up_DF!);
    const h_BTF = block.gate_DF === undefined ? gelu(up_BTF) : multiply(silu(matmul(x_BTD, block.gate_DF)), up_BTF);
    return matmul(h_BTF, block.down_FD!);
  };

  /** Logits, and what layers of experts leave behind. */
  const run = (
    params: GptParams,
    state: GptState,
    tokens_BT: Tensor,
    context: RunContext,
  ): readonly [logits_BTV: Tensor, experts: readonly ExpertsApplied[]] => {
    const length = tokens_BT.shape[1];
    if (tokens_BT.rank !== 2 || length! > contextLength) {
      throw new ShapeError(
        "gpt",
        `tokens [${tokens_BT.shape.join(", ")}] do not fit: it takes [B, T] with T up to the context length ${contextLength}; cut the sequences or raise contextLength`,
      );
    }
    const numDrops = 2 * numLayers + 1;
    const drop = (x: Tensor, use: number): Tensor => dropWhileTraining(x, dropoutRate, context, use);
    const embedded_BTD = scope("embedding", () => {
      const x_BTD = embedding(params.embedding_VD, cast(tokens_BT, "i32"));
      return drop(
        params.positions_TD === undefined ? x_BTD : add(x_BTD, slice(params.positions_TD, [0], [length!])),
        0,
      );
    });
    const applyExperts = (block: GptBlockParams, x: Tensor, layer: number): readonly [Tensor, ExpertsApplied] => {
      const own = state.experts![expertLayers.indexOf(layer)]!.own;
      const keyed = context.key === undefined ? context : { ...context, key: foldIn(context.key, numDrops + layer) };
      const [y, next, report] = experts!.layer.apply(block.experts, own, x, keyed);
      return [y, { own: next, report }];
    };
    /** What takes the place of `x`, and what its experts are left with, if it has any. */
    const applyBlock = (x: Tensor, block: GptBlockParams, layer: number): [Tensor, ...ExpertsApplied[]] => {
      const attended = scope("attention", () => attend(block, normalise(block.attentionNorm, x)));
      const y = add(x, drop(attended, 2 * layer + 1));
      const normed = (): Tensor => normalise(block.feedForwardNorm, y);
      const [branch, ...after] = hasExperts(layer)
        ? scope("experts", () => applyExperts(block, normed(), layer))
        : [scope("feed-forward", () => feedForward(block, normed()))];
      return [add(y, drop(branch, 2 * layer + 2)), ...after];
    };
    const after: ExpertsApplied[] = [];
    let x_BTD = embedded_BTD;
    for (const [layer, block] of params.blocks.entries()) {
      const [next, ...own] = scope(`block-${layer}`, () => asBlock(recompute, () => applyBlock(x_BTD, block, layer)));
      x_BTD = next;
      after.push(...own);
    }
    const logits_BTV = scope("head", () => {
      const normed_BTD = normalise(params.finalNorm, x_BTD);
      return params.head_DV === undefined
        ? matmul(normed_BTD, params.embedding_VD, { transposeB: true })
        : matmul(normed_BTD, params.head_DV);
    });
    return [logits_BTV, after];
  };

  const model = labelledModel<GptParams, GptState>({
    init: (key) => ({
      params: {
        embedding_VD: initEmbedding(foldIn(key, 0), [vocabulary, width]),
        ...(positions === "learned" && { positions_TD: initEmbedding(foldIn(key, 1), [contextLength, width]) }),
        blocks: Array.from({ length: numLayers }, (_, layer) => initBlock(foldIn(key, 3 + layer), layer)),
        finalNorm: initNorm(),
        ...(!tiedHead && { head_DV: normal(foldIn(key, 2), [width, vocabulary], { deviation: 0.02 }) }),
      },
      state: experts === undefined ? {} : { experts: expertLayers.map((layer) => initExperts(foldIn(key, 3 + layer))) },
    }),
    apply: (params, state, tokens_BT, context) => {
      const [logits_BTV, after] = run(params, state, tokens_BT, context);
      return [logits_BTV, experts === undefined ? state : { experts: after.map(kept) }];
    },
  });
  if (experts === undefined) return model;
  const { sharding } = experts;
  return {
    ...model,
    loss: (params, state, batch, context) => {
      const [loss, next] = model.loss(params, state, batch, context);
      if (!context.train) return [loss, next];
      return [next.experts!.reduce((sum, { report }) => add(sum, report.loss), loss), next];
    },
    experts: {
      layers: expertLayers.map((layer, i) => ({
        name: `block-${layer}`,
        params: `blocks.${layer}.experts`,
        state: `experts.${i}.own`,
      })),
      choices: (params, state, inputs, context) =>
        run(params, state, inputs, context)[1].map(({ report: { choices_TK } }, i) => {
          if (choices_TK === undefined)
            throw new ArgumentError(
              `gpt: the experts of block ${expertLayers[i]} take mixtures of all tokens, which choose none; ask for choices of a layer that makes them`,
            );
          return choices_TK;
        }),
    },
    figures: ({ experts: blocks }) =>
      Object.fromEntries(
        blocks!.flatMap(({ report: { loss, figures } }, i) =>
          Object.entries({ ...figures, auxiliaryLoss: loss }).map(([name, value]) => [
            `block-${expertLayers[i]}.${name}`,
            value as Tensor,
          ]),
        ),
      ),
    ...(sharding !== undefined && {
      sharding: (path: string) => {
        const own = /^blocks\.\d+\.experts\.(.*)$/.exec(path)?.[1];
        return own === undefined ? undefined : sharding(own);
      },
    }),
  };
};
