import { checkOptions, type OptionNames } from "../options.ts";
import { accumulateMomentum, type MomentumState } from "./accumulate-momentum.ts";
import { scaleByLearningRate, type ScheduleState } from "./scale.ts";
import { type AdamOptions, type AdamState, scaleByAdam } from "./scale-by-adam.ts";
import type { Schedule } from "./schedule.ts";
import { chain, type EmptyState, type GradientTransformation } from "./transformation.ts";
import { addDecayedWeights, type DecayMask } from "./weight-decay.ts";

/** Options of SGD. */
export interface SgdOptions {
  readonly learningRate: Schedule;
  /** Weight decay factor λ: adds λw to the gradient. Default: 0. */
  readonly weightDecay?: number;
  /** Parameters to which weight decay applies. Default: all parameters. */
  readonly mask?: DecayMask;
}

const sgdOptions: OptionNames<SgdOptions> = { learningRate: true, weightDecay: true, mask: true };

/**
 * Creates plain gradient descent: `w ← w − η(g + λw)` with learning rate η, gradient g and weight decay λ.
 *
 * @example
 * ```ts
 * const optimizer = sgd({ learningRate: 0.1 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const sgd = (options: SgdOptions): GradientTransformation<[EmptyState, ScheduleState]> => {
  const { learningRate, weightDecay = 0, mask } = checkOptions("sgd()", options, sgdOptions);
  return chain(addDecayedWeights(weightDecay, mask), scaleByLearningRate(learningRate));
};

/** Options of SGD with momentum. */
export interface MomentumSgdOptions extends SgdOptions {
  /** Decay factor of the velocity. Default: 0.9. */
  readonly decay?: number;
}

/**
 * Creates gradient descent with heavy-ball momentum, as PyTorch's SGD: `v ← μv + g + λw`, `w ← w − ηv` with velocity v,
 * its decay factor μ, learning rate η, gradient g and weight decay λ.
 *
 * @example
 * ```ts
 * const optimizer = momentum({ learningRate: 0.1 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const momentum = (
  options: MomentumSgdOptions,
): GradientTransformation<[EmptyState, MomentumState, ScheduleState]> => {
  const {
    learningRate,
    decay = 0.9,
    weightDecay = 0,
    mask,
  } = checkOptions("momentum()", options, { ...sgdOptions, decay: true });
  return chain(addDecayedWeights(weightDecay, mask), accumulateMomentum({ decay }), scaleByLearningRate(learningRate));
};

/**
 * Creates gradient descent with Nesterov momentum, as PyTorch's SGD with `nesterov`.
 *
 * @example
 * ```ts
 * const optimizer = nesterov({ learningRate: 0.1 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.810', '2.190']
 * ```
 */
export const nesterov = (
  options: MomentumSgdOptions,
): GradientTransformation<[EmptyState, MomentumState, ScheduleState]> => {
  const {
    learningRate,
    decay = 0.9,
    weightDecay = 0,
    mask,
  } = checkOptions("nesterov()", options, { ...sgdOptions, decay: true });
  return chain(
    addDecayedWeights(weightDecay, mask),
    accumulateMomentum({ decay, nesterov: true }),
    scaleByLearningRate(learningRate),
  );
};

/** Options of Adam, including the learning rate. */
export interface AdamOptimizerOptions extends AdamOptions {
  readonly learningRate: Schedule;
}

const adamOptions: OptionNames<AdamOptimizerOptions> = { learningRate: true, beta1: true, beta2: true, epsilon: true };

/**
 * Creates the Adam optimizer. Source: see `scaleByAdam`.
 *
 * @example
 * ```ts
 * const optimizer = adam({ learningRate: 0.1 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const adam = (options: AdamOptimizerOptions): GradientTransformation<[AdamState, ScheduleState]> => {
  const { learningRate, ...rest } = checkOptions("adam()", options, adamOptions);
  return chain(scaleByAdam(rest), scaleByLearningRate(learningRate));
};

/** Options of AdamW: the options of Adam, and decoupled weight decay. */
export interface AdamWOptions extends AdamOptimizerOptions {
  /** Factor λ of decoupled weight decay. Default: 0.01, as in PyTorch. */
  readonly weightDecay?: number;
  /**
   * Parameters to which weight decay applies. Default: all parameters. `decayMatrices` excludes biases and the scale
   * factors γ of normalizations.
   */
  readonly mask?: DecayMask;
}

/**
 * Creates Adam with decoupled weight decay: `w ← w − η(m̂/(√v̂ + ε) + λw)` with learning rate η, weight decay λ, and
 * m̂, v̂ and ε as in `scaleByAdam`. Source: see `addDecayedWeights`.
 *
 * @example
 * ```ts
 * const optimizer = adamw({ learningRate: 0.1, weightDecay: 0.1 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.890', '2.080']
 * ```
 */
export const adamw = (options: AdamWOptions): GradientTransformation<[AdamState, EmptyState, ScheduleState]> => {
  const {
    learningRate,
    weightDecay = 0.01,
    mask,
    ...rest
  } = checkOptions("adamw()", options, { ...adamOptions, ...sgdOptions });
  return chain(scaleByAdam(rest), addDecayedWeights(weightDecay, mask), scaleByLearningRate(learningRate));
};
