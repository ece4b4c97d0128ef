// Shapes: T tokens of this rank, D token width, E experts of all ranks, e experts of this rank, K choices per token, C
// slots per expert for the tokens of one rank, R = E·C slots in total, S rows that this rank's experts process.
import {
  add,
  allGather,
  ArgumentError,
  axisIndex,
  cast,
  constant,
  divide,
  foldIn,
  full,
  gather,
  greater,
  maximum,
  ownShard,
  reshape,
  scope,
  type Sharding,
  slice,
  stack,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { capacityByFactor, type CapacityRule } from "./capacity.ts";
import { denseDispatcher } from "./dispatch/dense-dispatcher.ts";
import type { DispatchSizes, ExpertRows, TokenDispatcher } from "./dispatch/token-dispatcher.ts";
import { countTokenRankPairs } from "./duplication.ts";
import type { Experts } from "./experts/experts.ts";
import type { ExpertChoices, Gate, GateFigures, Mixture } from "./gates/gate.ts";
import { joinMoeParts } from "./join-parts.ts";
import type { MoeFigures, MoeLayerApplied, MoeLayerParts, MoeReport, MoeState } from "./moe-report.ts";
import { gateScope } from "./gate-scope.ts";
import { mixFromSlots, mixToSlots, mixtureOrder } from "./mixture.ts";
import { checkCounts, checkDecay } from "./options.ts";
import { type Order, orderTokens, type WeightNormalisation } from "./order.ts";
import { maxOverRanks, sumOverRanks } from "./over-ranks.ts";
import { expertsPerRank, hiddenDimOf, initExperts, stackParams } from "./rank-experts.ts";
import { expertsByPosition } from "./placement/expert-positions.ts";
import { initLoadHistory, recordLoad } from "./routing/load-history.ts";
import type { WholeBatch } from "./losses/auxiliary-loss.ts";
import type { ExpertShards } from "./shards/expert-shards.ts";

/** Components and settings of an MoE layer. */
export interface MoeLayerOptions<GateParams, GateState, ExpertParams, SharedParams = never> {
  /** Gate that assigns tokens to experts. */
  readonly gate: Gate<GateParams, GateState>;
  readonly experts: Experts<ExpertParams>;
  /**
   * Shared expert that processes every token. Its output is added to the output of the chosen experts. Default: none.
   */
  readonly shared?: Experts<SharedParams>;
  /**
   * Capacity of an expert for the tokens of one rank. Not used for soft routing, because the gate then sets the number
   * of slots. Default: `capacityByFactor({ factor: 1.25 })`.
   */
  readonly capacity?: CapacityRule;
  /**
   * Whether a token's weights are divided by their sum, and when. `before-dropping`: a dropped entry does not change
   * the token's other weights. `after-dropping`: the remaining weights sum to 1. With a single choice, normalization
   * removes the gradient. Default: none.
   */
  readonly normalisation?: WeightNormalisation;
  /** Dispatcher that sends tokens between ranks. Default: `denseDispatcher()`. */
  readonly dispatcher?: TokenDispatcher;
  /**
   * Number of chunks in which tokens are sent. Experts process one chunk while another chunk is sent. Experts receive
   * the same bits for any number of chunks. Outputs are bitwise identical if the experts' kernels round each row
   * independently of other rows; kernels that process tiles of rows may differ in the last digit. Gradients are summed
   * in another order. Default: 1.
   *
   * A chunk has ⌈n / chunks⌉ of n items: the slots of each expert (`denseDispatcher`), or the rank's tokens (other
   * dispatchers). The last chunk may be smaller. Chunks are not padded.
   */
  readonly chunks?: number;
  /**
   * Number of chunks in which cotangents are sent in backward, split like tokens. A number other than `chunks` sends no
   * additional bytes, but rows are copied, and the experts' activations are recomputed. Requires a dispatcher whose
   * chunks are ranges of slots. Default: the value of `chunks`.
   */
  readonly backwardChunks?: number;
  /** Mesh axis over whose ranks experts are distributed. Default: "expert". */
  readonly axis?: string;
  /** Sharding of each expert over the ranks of another axis. Default: experts are not sharded. */
  readonly shards?: ExpertShards;
  /**
   * Mesh axes over which tokens are distributed. Loads and auxiliary losses are computed over all ranks of these axes.
   * Default: [axis], plus the shards' axis if its ranks gate different tokens.
   */
  readonly tokenAxes?: readonly string[];
  /**
   * Initial position of each expert: rank r has positions r·e to (r + 1)·e − 1. The placement does not change results.
   * Default: in order.
   */
  readonly placement?: readonly number[];
  /** Decay factor of the loads' running mean, per step. Default: 0.95. */
  readonly loadDecay?: number;
}

/** Parameters of an MoE layer. */
export interface MoeParams<GateParams, ExpertParams, SharedParams> {
  readonly gate: GateParams;
  /**
   * Experts of this rank, stacked along dimension 0 in order of position. With sharding, only this rank's shards of the
   * experts.
   */
  readonly experts: ExpertParams;
  /** Parameters of the shared expert, stacked as a single expert. */
  readonly shared?: SharedParams;
}

/** Context of a layer call: whether it is a training step, and the random key. Compatible with a model's context. */
export interface MoeContext {
  readonly train: boolean;
  /**
   * Random key u32[2], new for each step. Different on ranks with different tokens, and equal on ranks with equal
   * tokens. Required only by noise and random drop orders.
   */
  readonly key?: Tensor;
  /**
   * Sums over the full batch that auxiliary losses need. Present if the tokens of this call are only a part of a batch.
   */
  readonly whole?: WholeBatch;
}

/** An MoE layer, as traced functions. */
export interface MoeLayer<Params, State> {
  /** Returns initial parameters and state. @param key u32[2], equal on all ranks. */
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /** Sharding of the layer's parameters, by path. */
  readonly sharding: Sharding;
  /** Whether losses for a part of a batch need `sums` over the full batch: see `MoeContext.whole`. */
  readonly needsWhole: boolean;
  /** Combines the states and reports of several parts of a batch; see `joinMoeParts`. */
  joinParts(parts: MoeLayerParts<State>): MoeLayerApplied<State>;
  /** Runs the layer. @param x input of any float dtype, [..., D]; the output has the same shape and dtype. */
  apply(
    params: Params,
    state: State,
    x: Tensor,
    context: MoeContext,
  ): readonly [y: Tensor, state: State, report: MoeReport];
}

/** Returns a copy of a context whose key is derived for one purpose or one rank. */
const keyed = ({ key, ...context }: MoeContext, use: number | Tensor): MoeContext => ({
  ...context,
  ...(key !== undefined && { key: foldIn(key, use) }),
});

/** Outputs of the experts for a rank's tokens, with metrics of the token dispatch. */
interface Routed {
  readonly y_TD: Tensor;
  readonly figures: Omit<MoeFigures, keyof GateFigures>;
}

/**
 * Mixture-of-experts layer in six replaceable stages. The gate chooses experts for each token. Tokens are then ordered
 * by expert, dispatched to the ranks of their experts, and processed. Results are combined (sent back), weighted, and
 * restored to token order.
 *
 * The ranks along the axis have different experts, and equal numbers of different tokens. Gradients of experts are sums
 * over the tokens of all ranks along the axis. If the loss is the mean over ranks, divide these gradients by the number
 * of ranks. Gradients of all other parameters include only this rank's tokens, and are averaged as in any data-parallel
 * step. With `shards`, gradients of experts are sums over the ranks of the product axis.
 *
 * Cost: the gate, `2·T·D·E` flops for most gates; the experts, for K·T rows per rank on average; the dispatcher, twice
 * in forward and twice in backward; three small all-reduces for the metrics of the report, which are removed from the
 * graph if the metrics are not used.
 * @throws ArgumentError if the number of experts is not a multiple of the number of ranks, the placement is not a
 *   permutation, or sharded experts lack `hiddenDims`.
 * @example
 * ```ts
 * const [width, numExperts] = [4, 8];
 * const moe = moeLayer({ gate: switchGate({ width, numExperts }), experts: geluExperts({ width, hidden: 16 }) });
 * const apply = (key: Tensor, x: Tensor) => {
 *   const { params, state } = moe.init(key); // in a training step, arguments
 *   return moe.apply(params, state, x, { train: false })[0];
 * };
 * const y = await evaluate(apply, referenceBackend())(randomKey(1), NdArray.from(Array(8).fill(1), [2, 4]));
 * console.log(y.shape); // [2, 4]
 * ```
 * Source: stages after Pan et al. 2025 (FSMoE), ASPLOS; Lepikhin et al. 2020 (GShard), arXiv 2006.16668.
 */
export const moeLayer = <GateParams, GateState, ExpertParams, SharedParams = never>(
  options: MoeLayerOptions<GateParams, GateState, ExpertParams, SharedParams>,
): MoeLayer<MoeParams<GateParams, ExpertParams, SharedParams>, MoeState<GateState>> => {
  const {
    gate,
    experts,
    shared,
    capacity: capacityOf = capacityByFactor({ factor: 1.25 }),
    normalisation = "none",
    chunks: numChunks = 1,
    backwardChunks = numChunks,
    axis = "expert",
    shards,
    tokenAxes = shards?.gates === "own" ? [axis, shards.axis] : [axis],
    loadDecay = 0.95,
  } = options;
  const dispatcher = shards?.dispatcherFor(options.dispatcher) ?? options.dispatcher ?? denseDispatcher();
  checkCounts("moeLayer", { chunks: numChunks, backwardChunks });
  const hasBackwardChunks = backwardChunks !== numChunks;
  if (hasBackwardChunks && dispatcher.runWithBackwardChunks === undefined)
    throw new ArgumentError(
      `moeLayer: chunks is ${numChunks} and backwardChunks ${backwardChunks}, but this dispatcher would have to send rows again for other chunks; both must be equal, or use denseDispatcher()`,
    );
  const { numExperts } = gate;
  const placement = options.placement ?? Array.from({ length: numExperts }, (_, expert) => expert);
  const expertOfPosition = expertsByPosition(placement, numExperts);
  checkDecay("moeLayer", "loadDecay", loadDecay);

  /** Dispatches tokens, applies the experts, and combines their outputs. */
  const throughExperts = (params: ExpertParams, x_TD: Tensor, order: Order, sizes: DispatchSizes): Tensor => {
    const apply = (own: ExpertParams, { rows_SD, counts_e }: ExpertRows): Tensor =>
      scope("experts", () => experts.apply(own, rows_SD, counts_e));
    if (hasBackwardChunks)
      return dispatcher.runWithBackwardChunks!(x_TD, order, sizes, { params, apply, backwardChunks });
    const { chunks, metadata } = dispatcher.dispatch(x_TD, order, sizes);
    const outputs = chunks.map((rows) => apply(params, rows));
    return dispatcher.combine(outputs, metadata, sizes);
  };

  const applyChoices = (
    params: ExpertParams,
    x_TD: Tensor,
    {
      choices,
      load_E,
      placeOf_E,
    }: { readonly choices: ExpertChoices; readonly load_E: Tensor; readonly placeOf_E: Tensor },
    context: MoeContext,
  ): Routed => {
    const [numTokens, numChoices] = choices.choices_TK.shape as [number, number];
    const given = capacityOf({ numTokens, numExperts, numChoices });
    const { maxPerExpert = given.slots } = choices;
    const capacity = { ...given, slots: maxPerExpert };
    const sizes = { numExperts, numTokens, numChoices, slots: capacity.slots, axis, numChunks };
    const isChoice_TK = greater(choices.choices_TK, -1);
    const positions_TK = gather(placeOf_E, choices.choices_TK, { outside: "zero" });
    const order = scope("order", () =>
      orderTokens(
        { ...choices, choices_TK: where(isChoice_TK, positions_TK, -1) },
        { numExperts, capacity, normalisation, context: keyed(context, 1) },
      ),
    );
    const y_TD = throughExperts(params, x_TD, order, sizes);
    const overflows = greater(order.greatestLoad, capacity.slots);
    // One all-reduce for both numbers, because latency dominates its cost.
    const totals = sumOverRanks(
      stack([
        sum(cast(order.kept_E, "f32")),
        countTokenRankPairs(order, axisSize(axis), expertsPerRank(numExperts, axis)),
      ]),
      tokenAxes,
    );
    const [kept, targets] = [0, 1].map((i) => reshape(slice(totals, [i], [i + 1]), [])) as [Tensor, Tensor];
    return {
      y_TD: capacity.overflow === "refuse" ? add(y_TD, where(overflows, full([], NaN), 0)) : y_TD,
      figures: {
        droppedShare: subtract(1, divide(kept, maximum(sum(load_E), 1))),
        duplicationRate: divide(subtract(kept, targets), maximum(kept, 1)),
        greatestLoad: maxOverRanks(cast(order.greatestLoad, "f32"), tokenAxes),
      },
    };
  };

  const applyMixture = (params: ExpertParams, x_TD: Tensor, mixture: Mixture, placeOf_E: Tensor): Routed => {
    const slots = mixture.dispatch_TEC.shape[2]!;
    const sizes = { numExperts, numTokens: numExperts * slots, numChoices: 1, slots, axis, numChunks };
    const [x_RD, order] = scope("order", () => [
      mixToSlots(x_TD, mixture.dispatch_TEC),
      mixtureOrder(placeOf_E, slots),
    ]);
    const y_RD = throughExperts(params, x_RD, order, sizes);
    return {
      y_TD: scope("inverse-order", () => mixFromSlots(y_RD, mixture.combine_TEC)),
      figures: { droppedShare: full([], 0), duplicationRate: full([], 0), greatestLoad: full([], slots) },
    };
  };

  return {
    init: (key) => {
      const { params, state } = gate.init(foldIn(key, 0));
      return {
        params: {
          gate: params,
          experts: initExperts(experts, foldIn(key, 1), { expertOfPosition, axis, shards }),
          ...(shared !== undefined && { shared: stackParams([shared.init(foldIn(key, 2))]) }),
        },
        state: { gate: state, placeOf_E: constant(placement, "i32"), ...initLoadHistory(numExperts) },
      };
    },
    sharding: (path) => {
      const [, own] = /^experts\.(.*)$/.exec(path) ?? [];
      if (own === undefined) return [];
      const hidden = shards && { axis: shards.axis, dim: hiddenDimOf(experts, own) + 1 };
      return [{ axis, dim: 0 }, ...(hidden === undefined ? [] : [hidden])];
    },
    needsWhole: gate.needsWhole ?? false,
    joinParts: (parts) => joinMoeParts(gate, loadDecay, parts),
    apply: (params, state, x, given) => {
      expertsPerRank(numExperts, axis);
      const given_TD = cast(reshape(x, [-1, x.shape.at(-1)!]), "f32");
      const splitAxis = shards?.splits === true && axisSize(shards.axis) > 1 ? shards.axis : undefined;
      const [x_TD, context] =
        splitAxis === undefined
          ? [given_TD, given]
          : [ownShard(given_TD, { axis: splitAxis, dim: 0 }), keyed(given, axisIndex(splitAxis))];
      const gated = scope(gateScope, () =>
        gate.choose(params.gate, state.gate, x_TD, { ...keyed(context, 0), tokenAxes }),
      );
      const { placeOf_E } = state;
      const { load_E } = gated.figures;
      const { y_TD, figures } =
        gated.routing.kind === "choices"
          ? applyChoices(params.experts, x_TD, { choices: gated.routing, load_E, placeOf_E }, context)
          : applyMixture(params.experts, x_TD, gated.routing, placeOf_E);
      const { meanLoad_E, loadWeight } = context.train ? recordLoad(state, load_E, loadDecay) : state;
      const withShared = (): Tensor => {
        if (shared === undefined) return y_TD;
        const all_1 = full([1], x_TD.shape[0]!, "i32");
        return add(
          y_TD,
          scope("shared-expert", () => shared.apply(params.shared!, x_TD, all_1)),
        );
      };
      const own_TD = withShared();
      const y = splitAxis === undefined ? own_TD : scope("inverse-order", () => allGather(own_TD, splitAxis));
      return [
        cast(reshape(y, x.shape), x.dtype),
        { gate: gated.state, placeOf_E, meanLoad_E, loadWeight },
        {
          loss: gated.loss,
          sums: gated.sums,
          figures: { ...gated.figures, ...figures },
          ...(gated.routing.kind === "choices" && { choices_TK: gated.routing.choices_TK }),
        },
      ];
    },
  };
};
