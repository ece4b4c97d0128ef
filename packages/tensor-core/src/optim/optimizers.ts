import { accumulateMomentum, type MomentumState } from "./accumulate-momentum.ts";
import { scaleByLearningRate, type ScheduleState } from "./scale.ts";
import { type AdamOptions, type AdamState, scaleByAdam } from "./scale-by-adam.ts";
import type { Schedule } from "./schedule.ts";
import { chain, type EmptyState, type GradientTransformation } from "./transformation.ts";
import { addDecayedWeights, type DecayMask } from "./weight-decay.ts";

export interface SgdOptions {
  readonly learningRate: Schedule;
  /** Factor of the L2 penalty's gradient, `w`. Default: 0. */
  readonly weightDecay?: number;
  /** Which parameters decay. Default: all. */
  readonly mask?: DecayMask;
}

/** Plain gradient descent: `w ← w − η(g + λw)`. */
export const sgd = ({ learningRate, weightDecay = 0, mask }: SgdOptions): GradientTransformation<[EmptyState, ScheduleState]> =>
  chain(addDecayedWeights(weightDecay, mask), scaleByLearningRate(learningRate));

export interface MomentumSgdOptions extends SgdOptions {
  /** Factor of the past. Default: 0.9. */
  readonly decay?: number;
}

/** Gradient descent with heavy-ball momentum, as PyTorch's SGD: `v ← μv + g + λw`, `w ← w − ηv`. */
export const momentum = ({
  learningRate,
  decay = 0.9,
  weightDecay = 0,
  mask,
}: MomentumSgdOptions): GradientTransformation<[EmptyState, MomentumState, ScheduleState]> =>
  chain(addDecayedWeights(weightDecay, mask), accumulateMomentum({ decay }), scaleByLearningRate(learningRate));

/** Gradient descent with Nesterov momentum, as PyTorch's SGD with `nesterov`. */
export const nesterov = ({
  learningRate,
  decay = 0.9,
  weightDecay = 0,
  mask,
}: MomentumSgdOptions): GradientTransformation<[EmptyState, MomentumState, ScheduleState]> =>
  chain(addDecayedWeights(weightDecay, mask), accumulateMomentum({ decay, nesterov: true }), scaleByLearningRate(learningRate));

export interface AdamOptimizerOptions extends AdamOptions {
  readonly learningRate: Schedule;
}

/** Adam. Source: see `scaleByAdam`. */
export const adam = ({ learningRate, ...options }: AdamOptimizerOptions): GradientTransformation<[AdamState, ScheduleState]> =>
  chain(scaleByAdam(options), scaleByLearningRate(learningRate));

export interface AdamWOptions extends AdamOptimizerOptions {
  /** Decoupled decay. Default: 0.01, as in PyTorch. */
  readonly weightDecay?: number;
  /** Which parameters decay. Default: all; `decayMatrices` spares biases and gains. */
  readonly mask?: DecayMask;
}

/** Adam with decoupled weight decay: `w ← w − η(m̂/(√v̂ + ε) + λw)`. Source: see `addDecayedWeights`. */
export const adamw = ({
  learningRate,
  weightDecay = 0.01,
  mask,
  ...options
}: AdamWOptions): GradientTransformation<[AdamState, EmptyState, ScheduleState]> =>
  chain(scaleByAdam(options), addDecayedWeights(weightDecay, mask), scaleByLearningRate(learningRate));
