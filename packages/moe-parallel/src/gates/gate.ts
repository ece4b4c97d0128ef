// Shapes: T tokens of this rank, D token width, E experts, K choices per token, C slots per expert.
import {
  add,
  ArgumentError,
  cast,
  concat,
  full,
  greater,
  log,
  mean,
  multiply,
  negate,
  reshape,
  ShapeError,
  slice,
  stopGradient,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { countPerExpert } from "../load.ts";
import type { AuxiliaryLoss, RouterScores, TokenSums, WholeBatch } from "../losses/auxiliary-loss.ts";
import { numRanksOf, sumOverRanks } from "../over-ranks.ts";

/** Context of a gate call: whether it is a training step, the random key, and the tokens' distribution over ranks. */
export interface GateContext {
  /** Whether the gate runs in a training step, with noise, balancing and a new state. */
  readonly train: boolean;
  /** Random key u32[2], new for each step and different on each rank. Required only by noise and random drop orders. */
  readonly key?: Tensor;
  /** Mesh axes over which tokens are distributed. Loads and means are computed over all ranks along these axes. */
  readonly tokenAxes: readonly string[];
  /**
   * Sums over the full batch that auxiliary losses need. Present if the tokens of this call are only a part of a batch.
   */
  readonly whole?: WholeBatch;
}

/** Routing of each token to one or more experts. */
export interface ExpertChoices {
  readonly kind: "choices";
  /** Experts of each token, all different, i32; −1 for no choice. */
  readonly choices_TK: Tensor;
  /** Weight of each expert's output, f32. Gradients reach the router through these weights. */
  readonly weights_TK: Tensor;
  /** Maximum number of tokens per rank and expert. Present if the gate guarantees this maximum. */
  readonly maxPerExpert?: number;
}

/**
 * Soft routing: the input of each expert slot is a weighted sum of all tokens, and the output of each token is a
 * weighted sum of all slots.
 */
export interface Mixture {
  readonly kind: "mixture";
  /** Weight of each token in the input of each slot, f32. */
  readonly dispatch_TEC: Tensor;
  /** Weight of each slot's output in the output of each token, f32. */
  readonly combine_TEC: Tensor;
}

export interface GateFigures {
  /** Number of choices per expert over the tokens of all ranks, f32 [E]. */
  readonly load_E: Tensor;
  /** Mean entropy of the tokens' probabilities, in nats, f32 []; log E for uniform probabilities. */
  readonly entropy: Tensor;
}

/** Result of a gate for a rank's tokens. */
export interface GateOutput<State> {
  readonly routing: ExpertChoices | Mixture;
  /** State for the next step. */
  readonly state: State;
  /** Sum of the auxiliary losses, f32 []. */
  readonly loss: Tensor;
  /**
   * Sums over the tokens of this call. If the tokens are a part of a batch, the sums of all parts are added up for the
   * auxiliary losses; see `WholeBatch`.
   */
  readonly sums: TokenSums;
  readonly figures: GateFigures;
}

/** Assigns tokens to experts. Pure: parameters and state are inputs and outputs. */
export interface Gate<Params = unknown, State = unknown> {
  readonly numExperts: number;
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /**
   * Whether the auxiliary losses of a part of a batch need sums over the full batch: see `WholeBatch`. Default: false.
   */
  readonly needsWhole?: boolean;
  /**
   * Returns the state for the next step, in training. `choose` calls this function with the loads of its tokens.
   * Default: the state does not change.
   *
   * @param load_E number of choices per expert over the tokens of all ranks, f32.
   */
  readonly update?: (state: State, load_E: Tensor) => State;
  /** Chooses experts. @param x_TD tokens of any float dtype; scores are f32. */
  choose(params: Params, state: State, x_TD: Tensor, context: GateContext): GateOutput<State>;
}

/** Definition of a gate without the behavior that all gates share; `defineGate` adds this behavior. */
export interface GateRule<Params, State> {
  /** Name for error messages. */
  readonly name: string;
  readonly numExperts: number;
  readonly width: number;
  /** Auxiliary losses. The gate's loss is their sum. Default: none. */
  readonly losses?: readonly AuxiliaryLoss[] | undefined;
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /** Computes routing and scores. @param x_TD f32. */
  route(
    params: Params,
    state: State,
    x_TD: Tensor,
    context: GateContext,
  ): { readonly routing: ExpertChoices | Mixture; readonly scores: Omit<RouterScores, "choices_TK"> };
  /**
   * Returns the state for the next step, in training. @param load_E number of choices per expert over the tokens of all
   * ranks.
   */
  update?(state: State, load_E: Tensor): State;
}

const entropyOf = (probabilities_TE: Tensor): Tensor => {
  const logs_TE = log(where(greater(probabilities_TE, 0), probabilities_TE, 1));
  return mean(negate(sum(multiply(probabilities_TE, logs_TE), { dims: -1 })));
};

/** Returns the load of each expert, f32 [E]: its number of choices, or with soft routing its number of slots. */
const loadOf = (routing: ExpertChoices | Mixture, numExperts: number): Tensor =>
  routing.kind === "choices"
    ? cast(countPerExpert(routing.choices_TK, numExperts), "f32")
    : full([numExperts], routing.dispatch_TEC.shape[2]!);

/**
 * Defines a gate from its routing function. The gate also casts tokens to f32, adds losses, sums loads over ranks, and
 * updates the state only in training.
 *
 * Cost: one all-reduce of E + 1 numbers, plus the all-reduces of the losses.
 * @example
 * ```ts
 * const gate = defineGate({
 *   name: "first expert",
 *   numExperts: 2,
 *   width: 4,
 *   init: () => ({ params: {}, state: {} }),
 *   route: (_, __, x) => {
 *     const T = x.shape[0]!;
 *     const [choices_TK, logits_TE] = [zeros([T, 1], "i32"), zeros([T, 2])];
 *     const scores = { logits_TE, probabilities_TE: softmax(logits_TE) };
 *     return { routing: { kind: "choices", choices_TK, weights_TK: ones([T, 1]) }, scores };
 *   },
 * });
 * console.log(gate.numExperts); // 2
 * ```
 */
export const defineGate = <Params, State>(rule: GateRule<Params, State>): Gate<Params, State> => ({
  numExperts: rule.numExperts,
  needsWhole: rule.losses?.some(({ sums }) => sums !== undefined) ?? false,
  init: (key) => rule.init(key),
  ...(rule.update !== undefined && { update: (state: State, load_E: Tensor) => rule.update!(state, load_E) }),
  choose: (params, state, x_TD, context) => {
    const { name, numExperts, width, losses = [] } = rule;
    if (x_TD.rank !== 2 || x_TD.shape[1] !== width)
      throw new ShapeError(
        name,
        `tokens [${x_TD.shape.join(", ")}] do not match width ${width}; give one row per token, [T, ${width}]`,
      );
    const { routing, scores } = rule.route(params, state, cast(x_TD, "f32"), context);
    const lossInputs = { ...scores, ...(routing.kind === "choices" && { choices_TK: routing.choices_TK }) };
    // One all-reduce for loads and entropy, because latency dominates its cost.
    const local = concat([loadOf(routing, numExperts), reshape(entropyOf(scores.probabilities_TE), [1])]);
    const totals = sumOverRanks(stopGradient(local), context.tokenAxes);
    const load_E = slice(totals, [0], [numExperts]);
    const entropy = reshape(slice(totals, [numExperts]), []);
    return {
      routing,
      state: context.train && rule.update !== undefined ? rule.update(state, load_E) : state,
      loss: losses.reduce<Tensor>(
        (total, loss) => add(total, loss(lossInputs, context.tokenAxes, context.whole)),
        full([], 0),
      ),
      sums: Object.assign({}, ...losses.map(({ sums }) => sums?.(lossInputs, context.tokenAxes) ?? {})) as TokenSums,
      figures: {
        load_E,
        entropy: multiply(entropy, 1 / numRanksOf(context.tokenAxes)),
      },
    };
  },
});

/**
 * Returns the key of a context. Throws ArgumentError if there is no key, because the noise would then be missing, or
 * equal in every step.
 */
export const requireKey = (fn: string, { key }: Pick<GateContext, "key">): Tensor => {
  if (key === undefined)
    throw new ArgumentError(
      `${fn}: training draws random numbers, but the step passed no key; pass { train: true, key } with a new key in every step`,
    );
  return key;
};
