// Shapes: T tokens of this rank, D width of a token, E experts of all ranks, e experts of this rank, K choices of a
// token, C slots of an expert for tokens of one rank, R = E·C slots of all, S rows that this rank's experts see.
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
import { countTargets } from "./duplication.ts";
import type { Experts } from "./experts/experts.ts";
import type { Choices, Gate, GateFigures, Mixture } from "./gates/gate.ts";
import { joinMoeParts } from "./join-parts.ts";
import type { MoeFigures, MoeLayerApplied, MoeLayerParts, MoeReport, MoeState } from "./moe-report.ts";
import { gateScope } from "./gate-scope.ts";
import { mixFromSlots, mixToSlots, mixtureOrder } from "./mixture.ts";
import { checkCounts, checkDecay } from "./options.ts";
import { type Order, orderTokens, type WeightNormalisation } from "./order.ts";
import { maxOverRanks, sumOverRanks } from "./over-ranks.ts";
import { expertsPerRank, hiddenDimOf, initPlaced, stackParams } from "./placed-experts.ts";
import { expertsByPlace } from "./placement/expert-places.ts";
import { initLoadMemory, rememberLoad } from "./routing/load-memory.ts";
import type { WholeBatch } from "./losses/auxiliary-loss.ts";
import type { ExpertShards } from "./shards/expert-shards.ts";

/** What a layer of experts is made of. */
export interface MoeLayerOptions<GateParams, GateState, ExpertParams, SharedParams = never> {
  /** Which experts see which tokens. */
  readonly gate: Gate<GateParams, GateState>;
  readonly experts: Experts<ExpertParams>;
  /** An expert that sees every token, added to what the gate's choices give. Default: none. */
  readonly shared?: Experts<SharedParams>;
  /** Tokens of a rank that an expert takes. Default: `capacityByFactor({ factor: 1.25 })`. A mixture has its own. */
  readonly capacity?: CapacityRule;
  /**
   * Divide the weights of a token by their sum: before some are dropped, so that the others keep what they were, or
   * after, so that they add up to 1 again. A single choice loses its gradient thereby. Default: none.
   */
  readonly normalisation?: WeightNormalisation;
  /** How tokens travel. Default: `denseDispatcher()`. */
  readonly dispatcher?: TokenDispatcher;
  /**
   * In how many chunks tokens travel: the experts work on one while another is under way. What experts see is the same
   * bits, and the output of those that round a row alike whatever stands beside it; kernels that take rows in tiles may
   * differ in the last digit. Gradients are added up in another order. Default: 1.
   *
   * A chunk has ⌈n / chunks⌉ of the n slots of each expert (`denseDispatcher`) or of the rank's n tokens (the others);
   * the last may have fewer, and no padding is added.
   */
  readonly chunks?: number;
  /**
   * In how many chunks cotangents travel, cut as tokens are. Other chunks than in forward cost no byte more; rows are
   * copied, and the inside of experts is computed again. Only for dispatchers whose chunks are slots. Default: as
   * `chunks`.
   */
  readonly backwardChunks?: number;
  /** Axis of the mesh over whose ranks the experts lie spread. Default: "expert". */
  readonly axis?: string;
  /** How ranks along another axis share each expert out. Default: each is whole. */
  readonly shards?: ExpertShards;
  /**
   * Axes over which tokens lie spread: loads and auxiliary losses are those of all their ranks. Default: [axis], and
   * the shards' where their ranks gate different tokens.
   */
  readonly tokenAxes?: readonly string[];
  /**
   * Place of each expert before the first step: rank r holds places r·e to (r + 1)·e − 1. Changes nothing else.
   * Default: in order.
   */
  readonly placement?: readonly number[];
  /** What a step's loads count in their mean once another step has come, against before. Default: 0.95. */
  readonly loadDecay?: number;
}

/** Parameters of a layer of experts. */
export interface MoeParams<GateParams, ExpertParams, SharedParams> {
  readonly gate: GateParams;
  /** Stacked along dimension 0: those of this rank alone, by place; of each its shard. */
  readonly experts: ExpertParams;
  /** Stacked, a single one. */
  readonly shared?: SharedParams;
}

/** How a layer is being run; that of a model fits. */
export interface MoeContext {
  readonly train: boolean;
  /**
   * u32[2], fresh in every step and different on every rank that has other tokens; the same where tokens are. Only
   * noise and random drop orders need it.
   */
  readonly key?: Tensor;
  /** For tokens that are a part of a batch: what auxiliary losses need of the whole batch. */
  readonly whole?: WholeBatch;
}

/** A layer: plain traced functions. */
export interface MoeLayer<Params, State> {
  /** @param key u32[2], the same on all ranks. */
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /** How its parameters are shared out, by path. */
  readonly sharding: Sharding;
  /** Whether the losses of a part of a batch need `sums` of the whole batch: see `MoeContext.whole`. */
  readonly needsWhole: boolean;
  /** See `joinMoeParts`. */
  joinParts(parts: MoeLayerParts<State>): MoeLayerApplied<State>;
  /** @param x of any float dtype, [..., D]; the output is of its shape and dtype. */
  apply(
    params: Params,
    state: State,
    x: Tensor,
    context: MoeContext,
  ): readonly [y: Tensor, state: State, report: MoeReport];
}

/** A context whose key differs from use to use, or from rank to rank. */
const keyed = ({ key, ...context }: MoeContext, use: number | Tensor): MoeContext => ({
  ...context,
  ...(key !== undefined && { key: foldIn(key, use) }),
});

/** What became of a rank's tokens. */
interface Routed {
  readonly y_TD: Tensor;
  readonly figures: Omit<MoeFigures, keyof GateFigures>;
}

/**
 * A mixture of experts in six stages, each of which may be replaced: the gate chooses experts for each token, tokens
 * are put in order by expert, dispatched to the ranks of their experts, computed, combined (brought back), and put in
 * their own order again, weighted.
 *
 * Ranks of the axis have different tokens, equally many, and different experts. Gradients of experts are sums over the
 * tokens of all ranks of the axis: where the loss is the mean over ranks, divide them by their number; those of all
 * other parameters are of this rank's tokens, and averaged as in any data-parallel step. With `shards` those of experts
 * are sums over the ranks of the product axis.
 *
 * Cost: that of the gate, `2·T·D·E` flops for most; of the experts, for K·T rows per rank on average; of the
 * dispatcher, twice in forward and twice in backward; three all-reduces of a few numbers for the figures, which are
 * left out of a graph where nobody reads them.
 * @throws ArgumentError where the number of experts is no multiple of the ranks, the placement no permutation, or
 * experts do not tell how they are cut into shards.
 * @example const moe = moeLayer({ gate: switchGate({ width, numExperts: 8 }), experts: geluExperts({ width, hidden }) });
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
  const isApart = backwardChunks !== numChunks;
  if (isApart && dispatcher.throughApart === undefined)
    throw new ArgumentError(
      `moeLayer: chunks is ${numChunks} and backwardChunks ${backwardChunks}, but rows of this dispatcher would have to travel again for that; both must be equal, or use denseDispatcher()`,
    );
  const { numExperts } = gate;
  const placement = options.placement ?? Array.from({ length: numExperts }, (_, expert) => expert);
  const byPlace = expertsByPlace(placement, numExperts);
  checkDecay("moeLayer", "loadDecay", loadDecay);

  /** Tokens to the ranks of their experts, through those, and back. */
  const throughExperts = (params: ExpertParams, x_TD: Tensor, order: Order, sizes: DispatchSizes): Tensor => {
    const apply = (own: ExpertParams, { rows_SD, counts_e }: ExpertRows): Tensor =>
      scope("experts", () => experts.apply(own, rows_SD, counts_e));
    if (isApart) return dispatcher.throughApart!(x_TD, order, sizes, { params, apply, backwardChunks });
    const { chunks, metadata } = dispatcher.dispatch(x_TD, order, sizes);
    const done = chunks.map((rows) => apply(params, rows));
    return dispatcher.combine(done, metadata, sizes);
  };

  const applyChoices = (
    params: ExpertParams,
    x_TD: Tensor,
    { choices, load_E, placeOf_E }: { readonly choices: Choices; readonly load_E: Tensor; readonly placeOf_E: Tensor },
    context: MoeContext,
  ): Routed => {
    const [numTokens, numChoices] = choices.choices_TK.shape as [number, number];
    const given = capacityOf({ numTokens, numExperts, numChoices });
    const { mostPerExpert = given.slots } = choices;
    const capacity = { ...given, slots: mostPerExpert };
    const sizes = { numExperts, numTokens, numChoices, slots: capacity.slots, axis, numChunks };
    const isChoice_TK = greater(choices.choices_TK, -1);
    const places_TK = gather(placeOf_E, choices.choices_TK, { outside: "zero" });
    const order = scope("order", () =>
      orderTokens(
        { ...choices, choices_TK: where(isChoice_TK, places_TK, -1) },
        { numExperts, capacity, normalisation, context: keyed(context, 1) },
      ),
    );
    const y_TD = throughExperts(params, x_TD, order, sizes);
    const overflows = greater(order.greatestLoad, capacity.slots);
    // Together: what costs is that ranks wait for each other.
    const totals = sumOverRanks(
      stack([sum(cast(order.kept_E, "f32")), countTargets(order, axisSize(axis), expertsPerRank(numExperts, axis))]),
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
          experts: initPlaced(experts, foldIn(key, 1), { byPlace, axis, shards }),
          ...(shared !== undefined && { shared: stackParams([shared.init(foldIn(key, 2))]) }),
        },
        state: { gate: state, placeOf_E: constant(placement, "i32"), ...initLoadMemory(numExperts) },
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
      const { meanLoad_E, loadWeight } = context.train ? rememberLoad(state, load_E, loadDecay) : state;
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
