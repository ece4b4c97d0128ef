// Shapes: B batch, T positions, D width, H heads, K head width (D / H), F hidden width of the feed-forward layers, V
// vocabulary. A suffix names the dimensions of a tensor in order: x_BTD.
import {
  add,
  ArgumentError,
  axisIndex,
  cast,
  embedding,
  foldIn,
  full,
  gelu,
  mapTree,
  matmul,
  multiply,
  normal,
  ownShard,
  reshape,
  rotary,
  scope,
  ShapeError,
  type Shard,
  type Sharding,
  silu,
  slice,
  type Tensor,
  zerosLike,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type {
  FeedForwardReport,
  GptBlockParams,
  GptExpertsState,
  GptNormParams as NormParams,
  GptOptions,
  GptParams,
  GptState,
} from "./gpt-options.ts";
import { attendHeads } from "./attention-layer.ts";
import { dropWhileTraining, initEmbedding } from "./layers.ts";
import { lossResult } from "./loss-sum.ts";
import { type LabelledBatch, labelledModel, type Model, type RunContext } from "./model.ts";
import { requireSizes } from "./require-sizes.ts";
import { applyLayerNorm, applyRmsNorm, initLayerNorm, initRmsNorm } from "./normalisation.ts";
import { type Past, positionsOf } from "./past.ts";
import { runBlock } from "./recompute.ts";
import {
  dropOwnPositions,
  enterColumnParallel,
  gatherPositions,
  leaveRowParallel,
  ownPositions,
  type TensorParallel,
} from "./tensor-parallel.ts";

/** State and report of a layer of experts after a forward pass. */
interface ExpertsApplied {
  readonly own: unknown;
  readonly report: FeedForwardReport;
}

/**
 * Dimension along which tensor-parallel ranks shard a matrix of a block: columns (1) for the input matrices of a
 * branch, rows (0) for its output matrix.
 */
const sharedDims = { query_DD: 1, key_DD: 1, value_DD: 1, output_DD: 0, up_DF: 1, gate_DF: 1, down_FD: 0 } as const;

/**
 * Returns the sharding of a parameter, given its path.
 * @param own Sharding of the experts' parameters, by path in the tree of these parameters.
 */
const shardingOf =
  (tensor: TensorParallel | undefined, own: Sharding | undefined): Sharding =>
  (path) => {
    const [, experts, name] = /^blocks\.\d+\.(experts\.)?(.*)$/.exec(path) ?? [];
    if (experts !== undefined) return own?.(name!) ?? [];
    if (tensor === undefined || name === undefined || !Object.hasOwn(sharedDims, name)) return [];
    return [{ axis: tensor.axis, dim: sharedDims[name as keyof typeof sharedDims] }];
  };

/**
 * A decoder-only transformer over bytes (or other small vocabularies): normalization before each branch, causal
 * attention, a feed-forward layer, no biases in the matrices. Inputs i32 or u8 [B, T]; labels [B, T] are the inputs
 * shifted by one position.
 *
 * Weights are normal with standard deviation 0.02; the matrices whose output is added to the residual stream have 0.02
 * / √(2·layers), as in GPT-2.
 *
 * Parameters: `VD + L·(4D² + 2DF + norms)`, with SwiGLU `3DF` instead of `2DF`; plus `TD` with learned positions and
 * `DV` with an untied head. Forward flops per token: about twice the matrix parameters, plus `4·T·D` per layer for
 * attention. With `experts` some blocks have a layer of experts instead of the feed-forward layer; its auxiliary loss
 * is added to the training loss, and its metrics appear in `figures`.
 *
 * With `tensor` the ranks of an axis process the same samples; embedding, head and norms are replicated. `loss` and
 * `evaluate` cover a rank's own positions: the mean of the losses over ranks, and the sum of the metrics, equal the
 * results of a single rank. Initial parameters and dropout are also equal to those of a single rank. A layer of experts
 * receives the rank's own positions, as if the axis were a data-parallel axis, or all positions (`positions`). Per
 * block and rank the forward pass sends `4(P−1)/P · 4BTD` bytes, and the backward pass sends the same number of bytes.
 *
 * @throws ArgumentError if sizes are not positive integers, the heads do not divide the width, no block would have
 * experts, or the number of tensor-parallel ranks does not divide the number of heads, F or T. Source: Radford et al.
 * 2019 (GPT-2); Su et al. 2021, arXiv 2104.09864 (rotary); Shazeer 2020, arXiv 2002.05202 (SwiGLU).
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
    tensor,
  } = options;
  const hidden = options.hidden ?? (activation === "gelu" ? 4 * width : 8 * Math.ceil(width / 3));
  requireSizes("gpt", { vocabulary, contextLength, width, numLayers, numHeads, hidden });
  if (width % numHeads !== 0)
    throw new ArgumentError(
      `gpt: ${numHeads} heads do not divide the width ${width}; choose a width that is a multiple of the heads`,
    );
  if (experts !== undefined && (!Number.isInteger(experts.every) || experts.every < 1 || experts.every > numLayers))
    throw new ArgumentError(
      `gpt: experts.every is ${experts.every}, but there are ${numLayers} blocks; use an integer from 1 to ${numLayers}`,
    );
  const headWidth = width / numHeads;
  const isSequence = tensor !== undefined && (tensor.sequence ?? true);
  /**
   * Checks that the number of tensor-parallel ranks divides `sizes`. Called while tracing, because the mesh is known
   * only then.
   */
  const requireDivisible = (sizes: Readonly<Record<string, number>>): void => {
    const numRanks = tensor === undefined ? 1 : axisSize(tensor.axis);
    for (const [name, size] of Object.entries(sizes))
      if (size % numRanks !== 0)
        throw new ArgumentError(
          `gpt: ${size} ${name} are not divisible by ${numRanks} ranks of axis "${tensor!.axis}"; use a multiple of ${numRanks}, or fewer ranks`,
        );
  };
  const hasExperts = (layer: number): boolean => experts !== undefined && (layer + 1) % experts.every === 0;
  const expertLayers = Array.from({ length: numLayers }, (_, layer) => layer).filter(hasExperts);
  if (positions === "rotary" && headWidth % 2 !== 0)
    throw new ArgumentError(
      `gpt: rotary positions rotate pairs of values, but a head of ${width} / ${numHeads} = ${headWidth} values is odd; use an even head width or learned positions`,
    );

  const initNorm = (): NormParams => (norm === "layer" ? initLayerNorm(width) : initRmsNorm(width));
  const normalise = ({ gain, shift }: NormParams, x: Tensor): Tensor =>
    shift === undefined ? applyRmsNorm({ gain }, x) : applyLayerNorm({ gain, shift }, x);

  const initFeedForward = (
    columns: (id: number, numIn: number, numOut: number) => Tensor,
    rows: (id: number, numIn: number, numOut: number) => Tensor,
  ): Pick<GptBlockParams, "up_DF" | "gate_DF" | "down_FD"> => ({
    up_DF: columns(4, width, hidden),
    ...(activation === "swiglu" && { gate_DF: columns(5, width, hidden) }),
    down_FD: rows(6, hidden, width),
  });

  const initBlock = (key: Tensor, layer: number): GptBlockParams => {
    const inner = 0.02;
    const residual = inner / Math.sqrt(2 * numLayers);
    // Each rank draws the whole matrix, so that its values do not depend on the number of ranks.
    const weight = (id: number, shape: readonly [number, number], deviation: number, dim: Shard["dim"]): Tensor => {
      const whole = normal(foldIn(key, id), shape, { deviation });
      return tensor === undefined ? whole : ownShard(whole, { axis: tensor.axis, dim });
    };
    const columns = (id: number, numIn: number, numOut: number): Tensor => weight(id, [numIn, numOut], inner, 1);
    const rows = (id: number, numIn: number, numOut: number): Tensor => weight(id, [numIn, numOut], residual, 0);
    return {
      attentionNorm: initNorm(),
      query_DD: columns(0, width, width),
      key_DD: columns(1, width, width),
      value_DD: columns(2, width, width),
      output_DD: rows(3, width, width),
      feedForwardNorm: initNorm(),
      ...(hasExperts(layer) ? { experts: experts!.layer.init(foldIn(key, 7)).params } : initFeedForward(columns, rows)),
    };
  };

  /** Returns the state of a layer of experts before the first step, with a report of zeros. */
  const initExperts = (key: Tensor): GptExpertsState => {
    const { params, state } = experts!.layer.init(foldIn(key, 7));
    // Traced only to get the shapes of the report; never executed.
    const [, , report] = experts!.layer.apply(params, state, full([1, 1, width], 0), { train: false, key });
    return stored({ own: state, report: mapTree(report, (leaf: Tensor) => zerosLike(leaf)) as FeedForwardReport });
  };

  const stored = ({ own, report: { loss, figures, sums = {} } }: ExpertsApplied): GptExpertsState => ({
    own,
    report: { loss, figures, sums },
  });
  const stateAfter = (state: GptState, applied: readonly ExpertsApplied[]): GptState =>
    experts === undefined ? state : { experts: applied.map(stored) };

  const enter = (x: Tensor): Tensor => (tensor === undefined ? x : enterColumnParallel(x, tensor));
  const leave = (y: Tensor): Tensor => (tensor === undefined ? y : leaveRowParallel(y, tensor));

  const attend = (block: GptBlockParams, own: Tensor, past: Past | undefined): Tensor => {
    const x_BTD = enter(own);
    const [query, key, value] = [block.query_DD, block.key_DD, block.value_DD].map((weight_DD) =>
      matmul(x_BTD, weight_DD),
    ) as [Tensor, Tensor, Tensor];
    const at = positionsOf(past, x_BTD.shape[1]!);
    const turn = (x_BHTK: Tensor): Tensor =>
      positions === "rotary" ? rotary(x_BHTK, { ...(at && { positions: at }) }) : x_BHTK;
    return leave(matmul(attendHeads(query, key, value, { headWidth, turn, causal: true, past }), block.output_DD));
  };

  const feedForward = (block: GptBlockParams, own: Tensor): Tensor => {
    const x_BTD = enter(own);
    const up_BTF = matmul(x_BTD, block.up_DF!);
    const h_BTF = block.gate_DF === undefined ? gelu(up_BTF) : multiply(silu(matmul(x_BTD, block.gate_DF)), up_BTF);
    return leave(matmul(h_BTF, block.down_FD!));
  };

  /**
   * Applies all blocks.
   * @returns the input of the final norm, for this rank's positions with `sequence` and for all positions without
   * `sequence`; and the states and reports of the layers of experts.
   */
  const applyBlocks = (
    params: GptParams,
    state: GptState,
    tokens_BT: Tensor,
    context: RunContext,
  ): readonly [x_BTD: Tensor, experts: readonly ExpertsApplied[]] => {
    const length = tokens_BT.shape[1];
    if (tokens_BT.rank !== 2 || length! > contextLength) {
      throw new ShapeError(
        "gpt",
        `tokens [${tokens_BT.shape.join(", ")}] do not fit: [B, T] with T up to the context length ${contextLength} is required; cut the sequences or raise contextLength`,
      );
    }
    if (isSequence) requireDivisible({ positions: length! });
    const own = (x: Tensor, dim: number): Tensor => (isSequence ? ownShard(x, { axis: tensor.axis, dim }) : x);
    const numDrops = 2 * numLayers + 1;
    const drop = (x: Tensor, use: number): Tensor =>
      isSequence
        ? dropOwnPositions(x, dropoutRate, context, { use, axis: tensor.axis })
        : dropWhileTraining(x, dropoutRate, context, use);
    const embedded_BTD = scope("embedding", () => {
      const x_BTD = embedding(params.embedding_VD, cast(own(tokens_BT, 1), "i32"));
      if (params.positions_TD === undefined) return drop(x_BTD, 0);
      const at = positionsOf(context.past, length!);
      const positions_TD =
        at === undefined ? slice(params.positions_TD, [0], [length!]) : embedding(params.positions_TD, at);
      return drop(add(x_BTD, own(positions_TD, 0)), 0);
    });
    const applyExperts = (block: GptBlockParams, x: Tensor, layer: number): readonly [Tensor, ExpertsApplied] => {
      const at = expertLayers.indexOf(layer);
      const { whole, ...run } = keyedFor(context, numDrops + layer);
      const sums = (whole?.state as GptState | undefined)?.experts![at]!.report.sums;
      const [y, next, report] = experts!.layer.apply(block.experts, state.experts![at]!.own, x, {
        ...run,
        ...(sums !== undefined && { whole: { sums, numParts: whole!.numParts } }),
      });
      return [y, { own: next, report }];
    };
    /** Returns the output of a block and, if the block has experts, their state and report. */
    const applyBlock = (x: Tensor, block: GptBlockParams, layer: number): [Tensor, ...ExpertsApplied[]] => {
      const attended = scope("attention", () => attend(block, normalise(block.attentionNorm, x), context.past));
      const y = add(x, drop(attended, 2 * layer + 1));
      const normed = (): Tensor => normalise(block.feedForwardNorm, y);
      const [branch, ...after] = hasExperts(layer)
        ? scope("experts", () => applyToExpertTokens(normed(), (tokens) => applyExperts(block, tokens, layer)))
        : [scope("feed-forward", () => feedForward(block, normed()))];
      return [add(y, drop(branch, 2 * layer + 2)), ...after];
    };
    const after: ExpertsApplied[] = [];
    let x_BTD = embedded_BTD;
    for (const [layer, block] of params.blocks.entries()) {
      const [next, ...applied] = scope(`block-${layer}`, () =>
        runBlock(recompute, () => applyBlock(x_BTD, block, layer), context.past),
      );
      x_BTD = next;
      after.push(...applied);
    }
    return [x_BTD, after];
  };

  const takesAllPositions = experts?.positions === "all";

  /**
   * Returns a context whose key is different for each use, and for each rank along the tensor axis if these ranks apply
   * experts to different token positions.
   */
  const keyedFor = (context: RunContext, use: number): RunContext => {
    if (context.key === undefined) return context;
    const key = foldIn(context.key, use);
    const isSame = takesAllPositions || tensor === undefined || axisSize(tensor.axis) === 1;
    return { ...context, key: isSame ? key : foldIn(key, axisIndex(tensor.axis)) };
  };

  /** Applies `fn`, a layer of experts, to the rank's own positions or to all positions, as set by `positions`. */
  const applyToExpertTokens = <Rest extends readonly unknown[]>(
    x: Tensor,
    fn: (tokens: Tensor) => readonly [Tensor, ...Rest],
  ): readonly [Tensor, ...Rest] => {
    if (tensor === undefined || isSequence !== takesAllPositions) return fn(x);
    if (!takesAllPositions) requireDivisible({ positions: x.shape[1]! });
    const [enterExperts, leaveExperts] = takesAllPositions
      ? [gatherPositions, ownPositions]
      : [ownPositions, gatherPositions];
    const [y, ...rest] = fn(enterExperts(x, tensor));
    return [leaveExperts(y, tensor), ...rest];
  };

  /** Selects the rows of this rank's own positions from per-token results of the experts, [B·T, …]. */
  const selectOwnTokens = (each: Tensor, tokens_BT: Tensor): Tensor =>
    tensor === undefined || !takesAllPositions
      ? each
      : reshape(ownPositions(reshape(each, [...tokens_BT.shape, -1]), tensor), [-1, each.shape[1]!]);

  const applyHead = (params: GptParams, x_BTD: Tensor): Tensor =>
    scope("head", () => {
      const normed_BTD = normalise(params.finalNorm, x_BTD);
      return params.head_DV === undefined
        ? matmul(normed_BTD, params.embedding_VD, { transposeB: true })
        : matmul(normed_BTD, params.head_DV);
    });

  const init: Model<GptParams, GptState>["init"] = (key) => {
    requireDivisible({ heads: numHeads, "hidden values": hidden });
    return {
      params: {
        embedding_VD: initEmbedding(foldIn(key, 0), [vocabulary, width]),
        ...(positions === "learned" && { positions_TD: initEmbedding(foldIn(key, 1), [contextLength, width]) }),
        blocks: Array.from({ length: numLayers }, (_, layer) => initBlock(foldIn(key, 3 + layer), layer)),
        finalNorm: initNorm(),
        ...(!tiedHead && { head_DV: normal(foldIn(key, 2), [width, vocabulary], { deviation: 0.02 }) }),
      },
      state: experts === undefined ? {} : { experts: expertLayers.map((layer) => initExperts(foldIn(key, 3 + layer))) },
    };
  };
  /** Returns the logits of all positions, on every rank. */
  const apply: Model<GptParams, GptState>["apply"] = (params, state, tokens_BT, context) => {
    const [x_BTD, applied] = applyBlocks(params, state, tokens_BT, context);
    const logits_BTV = applyHead(params, x_BTD);
    return [
      isSequence ? scope("head", () => gatherPositions(logits_BTV, tensor)) : logits_BTV,
      stateAfter(state, applied),
    ];
  };
  const model = labelledModel<GptParams, GptState>({
    init,
    apply: (params, state, tokens_BT, context) => {
      const [x_BTD, applied] = applyBlocks(params, state, tokens_BT, context);
      const own = tensor === undefined || isSequence ? x_BTD : ownPositions(x_BTD, tensor);
      return [applyHead(params, own), stateAfter(state, applied)];
    },
  });
  const selectOwnPositions = (batch: LabelledBatch): LabelledBatch => {
    if (tensor === undefined) return batch;
    requireDivisible({ positions: batch.labels.shape[1]! });
    return { ...batch, labels: ownPositions(batch.labels, tensor) };
  };
  const gptModel: Model<GptParams, GptState> = {
    init,
    apply,
    loss: (params, state, batch, context) => {
      const result = model.loss(params, state, selectOwnPositions(batch), context);
      if (!context.train || experts === undefined) return result;
      const [, next, ofRows] = result;
      const auxiliary = next.experts!.map(({ report }) => report.loss).reduce((sum, loss) => add(sum, loss));
      return lossResult({ ...ofRows!, auxiliary }, next);
    },
    evaluate: (params, state, batch) => model.evaluate(params, state, selectOwnPositions(batch)),
    ...(experts?.layer.joinParts !== undefined && {
      needsWhole: experts.layer.needsWhole ?? false,
      joinParts: ({ before, earlier, own, numEarlier }) => ({
        experts: before.experts!.map((block, i) => {
          const applied = ({ own: state, report }: GptExpertsState) => ({ state, report });
          const { state, report } = experts.layer.joinParts!({
            before: block.own,
            earlier: applied(earlier.experts![i]!),
            own: applied(own.experts![i]!),
            numEarlier: cast(numEarlier, "f32"),
          });
          return stored({ own: state, report });
        }),
      }),
    }),
    ...((tensor !== undefined || experts?.sharding !== undefined) && {
      sharding: shardingOf(tensor, experts?.sharding),
    }),
  };
  if (experts === undefined) return gptModel;
  return {
    ...gptModel,
    experts: {
      layers: expertLayers.map((layer, i) => ({
        name: `block-${layer}`,
        params: `blocks.${layer}.experts`,
        state: `experts.${i}.own`,
      })),
      choices: (params, state, inputs, context) =>
        applyBlocks(params, state, inputs, context)[1].map(({ report: { choices_TK } }, i) => {
          if (choices_TK === undefined)
            throw new ArgumentError(
              `gpt: the experts of block ${expertLayers[i]} mix all tokens and make no choices; request choices only of a layer with routing`,
            );
          return selectOwnTokens(choices_TK, inputs);
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
  };
};
