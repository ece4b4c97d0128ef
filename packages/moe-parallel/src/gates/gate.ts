// Shapes: T tokens of this rank, D width of a token, E experts, K choices of a token, C slots of an expert.
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

/** How a gate is being run. */
export interface GateContext {
  /** Noise, balancing and new state while training; none of them otherwise. */
  readonly train: boolean;
  /** u32[2], fresh in every step and different on every rank. Only noise and random drop orders need it. */
  readonly key?: Tensor;
  /** Axes of the mesh over which tokens lie spread: loads and means are those of all their ranks. */
  readonly tokenAxes: readonly string[];
  /** For tokens that are a part of a batch: what auxiliary losses need of the whole batch. */
  readonly whole?: WholeBatch;
}

/** Each token goes to some experts. */
export interface Choices {
  readonly kind: "choices";
  /** i32, experts of each token, all different; −1 where there is no choice. */
  readonly choices_TK: Tensor;
  /** f32, what each expert's output counts. Gradients flow to the router through them. */
  readonly weights_TK: Tensor;
  /** The gate itself sees to it that an expert gets no more tokens of a rank than these. */
  readonly mostPerExpert?: number;
}

/** Each slot of an expert gets a weighted sum of all tokens, and each token one of all slots. */
export interface Mixture {
  readonly kind: "mixture";
  /** f32 */
  readonly dispatch_TEC: Tensor;
  /** f32 */
  readonly combine_TEC: Tensor;
}

export interface GateFigures {
  /** f32 [E]: choices of each expert, of the tokens of all ranks. */
  readonly load_E: Tensor;
  /** f32 []: mean over tokens of the entropy of their probabilities, in nats; log E where they are uniform. */
  readonly entropy: Tensor;
}

/** What a gate says about a rank's tokens. */
export interface Gated<State> {
  readonly routing: Choices | Mixture;
  /** To be used in the next step. */
  readonly state: State;
  /** f32 []: the sum of the auxiliary losses. */
  readonly loss: Tensor;
  /** Sums that auxiliary losses need of a whole batch, of these tokens. */
  readonly sums: TokenSums;
  readonly figures: GateFigures;
}

/** Decides which experts see which tokens. Pure: parameters and state enter and leave. */
export interface Gate<Params = unknown, State = unknown> {
  readonly numExperts: number;
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /** Whether auxiliary losses need sums of a whole batch: see `WholeBatch`. Default: false. */
  readonly needsWhole?: boolean;
  /**
   * State of the next step, while training; `choose` has it applied to the loads of its own tokens. Default: the state
   * stays.
   *
   * @param load_E f32, choices of each expert, of the tokens of all ranks.
   */
  readonly update?: (state: State, load_E: Tensor) => State;
  /** @param x_TD of any float dtype; scores are f32. */
  choose(params: Params, state: State, x_TD: Tensor, context: GateContext): Gated<State>;
}

/** What a gate decides by itself; `defineGate` adds what all gates have in common. */
export interface GateRule<Params, State> {
  /** For messages. */
  readonly name: string;
  readonly numExperts: number;
  readonly width: number;
  /** Added up. */
  readonly losses?: readonly AuxiliaryLoss[] | undefined;
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /** @param x_TD f32. */
  route(
    params: Params,
    state: State,
    x_TD: Tensor,
    context: GateContext,
  ): { readonly routing: Choices | Mixture; readonly scores: Omit<RouterScores, "choices_TK"> };
  /** State of the next step, while training. @param load_E choices of each expert, of the tokens of all ranks. */
  update?(state: State, load_E: Tensor): State;
}

const entropyOf = (probabilities_TE: Tensor): Tensor => {
  const logs_TE = log(where(greater(probabilities_TE, 0), probabilities_TE, 1));
  return mean(negate(sum(multiply(probabilities_TE, logs_TE), { dims: -1 })));
};

/** Choices of each expert; in a mixture its slots. */
const loadOf = (routing: Choices | Mixture, numExperts: number): Tensor =>
  routing.kind === "choices"
    ? cast(countPerExpert(routing.choices_TK, numExperts), "f32")
    : full([numExperts], routing.dispatch_TEC.shape[2]!);

/**
 * A gate from what it decides by itself: tokens are cast to f32, losses added up, loads counted over ranks, and what
 * only training changes is left alone otherwise.
 *
 * Cost: one all-reduce of E + 1 numbers, and those of the losses.
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
        `tokens [${x_TD.shape.join(", ")}] do not fit its width ${width}; give one row for each token, [T, ${width}]`,
      );
    const { routing, scores } = rule.route(params, state, cast(x_TD, "f32"), context);
    const seen = { ...scores, ...(routing.kind === "choices" && { choices_TK: routing.choices_TK }) };
    // Together: what costs is that ranks wait for each other, not the one number more.
    const local = concat([loadOf(routing, numExperts), reshape(entropyOf(scores.probabilities_TE), [1])]);
    const totals = sumOverRanks(stopGradient(local), context.tokenAxes);
    const load_E = slice(totals, [0], [numExperts]);
    const entropy = reshape(slice(totals, [numExperts]), []);
    return {
      routing,
      state: context.train && rule.update !== undefined ? rule.update(state, load_E) : state,
      loss: losses.reduce<Tensor>(
        (total, loss) => add(total, loss(seen, context.tokenAxes, context.whole)),
        full([], 0),
      ),
      sums: Object.assign({}, ...losses.map(({ sums }) => sums?.(seen, context.tokenAxes) ?? {})) as TokenSums,
      figures: {
        load_E,
        entropy: multiply(entropy, 1 / numRanksOf(context.tokenAxes)),
      },
    };
  },
});

/** @throws ArgumentError where noise is due and there is no key: every step would draw the same, or none. */
export const requireKey = (fn: string, { key }: Pick<GateContext, "key">): Tensor => {
  if (key === undefined)
    throw new ArgumentError(
      `${fn}: it draws random numbers while training, but the step passed no key; pass { train: true, key } with a fresh key every step`,
    );
  return key;
};
