import { ArgumentError, flattenTree, leafPaths, type Tensor } from "@skein/tensor-core";
import { formatSpec } from "@skein/tensor-core/backend";
import type { Aggregator } from "./aggregator.ts";
import type { Bucket } from "./bucket.ts";
import { identityCompressor } from "./identity.ts";

/** An aggregator, and the step from which the aggregator is used. */
export interface AggregatorPhase<State = unknown> {
  readonly fromStep: number;
  readonly aggregator: Aggregator<State>;
}

const describe = (state: unknown): string => {
  const { leaves } = flattenTree<Tensor>(state);
  return leafPaths(state)
    .map((path, i) => `${path} ${formatSpec(leaves[i]!)}`)
    .join(", ");
};

/** Returns the first phase's initial state. Throws if the states of the phases differ in structure. */
const initCommonState = <State>(phases: readonly AggregatorPhase<State>[], bucket: Bucket): State => {
  const states = phases.map(({ aggregator }) => aggregator.init(bucket));
  const descriptions = states.map(describe);
  const other = descriptions.findIndex((description) => description !== descriptions[0]);
  if (other !== -1)
    throw new ArgumentError(
      `the phase from step ${phases[other]!.fromStep} has state [${descriptions[other]}], but the first phase has [${descriptions[0]}]; all phases need the same state: wrap all of them in error feedback, or none`,
    );
  return states[0]!;
};

/**
 * Checks a sequence of phases: aggregators that replace each other during a run, each from its first step on. All
 * phases use one common state. Each phase has a separate graph, which is compiled when the phase begins.
 *
 * @returns the phases with an `init` that throws if the states of the phases differ in structure for a bucket.
 * @throws ArgumentError unless the first phase begins at step 0 and steps increase.
 * @example
 * ```ts
 * const phases = definePhases([
 *   { fromStep: 0, aggregator: qsgdCompressor({ levels: 127 }) },
 *   { fromStep: 500, aggregator: qsgdCompressor({ levels: 4 }) },
 * ]);
 * console.log(aggregatorForStep(phases, 500).name); // QSGD 4
 * ```
 */
export const definePhases = <State>(phases: readonly AggregatorPhase<State>[]): readonly AggregatorPhase<State>[] => {
  const steps = phases.map(({ fromStep }) => fromStep);
  if (steps[0] !== 0 || !steps.every((step, i) => Number.isInteger(step) && (i === 0 || step > steps[i - 1]!)))
    throw new ArgumentError(
      `phases begin at steps [${steps.join(", ")}]; the first must begin at step 0, and steps must increase`,
    );
  return phases.map(({ fromStep, aggregator }) => ({
    fromStep,
    aggregator: { ...aggregator, init: (bucket) => initCommonState(phases, bucket) },
  }));
};

/**
 * Returns the aggregator of a step: the aggregator of the last phase with `fromStep` at most `step`. @param phases
 * result of `definePhases`.
 * @example
 * ```ts
 * const phases = denseUntil(100, withErrorFeedback(topKCompressor({ density: 0.01 })));
 * console.log(aggregatorForStep(phases, 0).name); // dense
 * console.log(aggregatorForStep(phases, 100).name); // top-k 0.01 with error feedback
 * ```
 */
export const aggregatorForStep = <State>(phases: readonly AggregatorPhase<State>[], step: number): Aggregator<State> =>
  phases.findLast(({ fromStep }) => fromStep <= step)!.aggregator;

/**
 * Returns phases of increasing or decreasing density.
 *
 * @param schedule pairs of a step and the density from that step on; the first step is 0.
 * @throws ArgumentError under the conditions of `definePhases`.
 * @example
 * ```ts
 * const sparse = (density: number) => withErrorFeedback(topKCompressor({ density }));
 * const phases = densityPhases([[0, 0.25], [100, 0.01]], sparse);
 * console.log(phases.map(({ fromStep, aggregator }) => [fromStep, aggregator.biased])); // [[0, true], [100, true]]
 * ```
 */
export const densityPhases = <State>(
  schedule: readonly (readonly [fromStep: number, density: number])[],
  make: (density: number) => Aggregator<State>,
): readonly AggregatorPhase<State>[] =>
  definePhases(schedule.map(([fromStep, density]) => ({ fromStep, aggregator: make(density) })));

/**
 * Returns an aggregator that computes the mean by dense all-reduce, and keeps the state of another aggregator
 * unchanged.
 */
const denseWithStateOf = <State>({ init }: Pick<Aggregator<State>, "init">): Aggregator<State> => {
  const dense = identityCompressor();
  const halves = dense.halves!;
  return {
    name: "dense",
    biased: false,
    scope: "tensor",
    init: (bucket) => init(bucket),
    aggregate: (gradient, state, bucket, context) => ({ ...dense.aggregate(gradient, [], bucket, context), state }),
    halves: {
      begin: (gradient, state, bucket, context) => ({ ...halves.begin(gradient, [], bucket, context), state }),
      finish: (pending, bucket, context) => halves.finish(pending, bucket, context),
    },
    bytesSent: (bucket, worldSize) => dense.bytesSent(bucket, worldSize),
  };
};

/**
 * Returns phases with a dense all-reduce before step `step`, and the aggregator from this step on, as warm-up for 1-bit
 * methods and PowerSGD. The aggregator's state does not change during the warm-up, so the aggregator begins with an
 * empty residual.
 *
 * @param step first step of the aggregator; 0 for no warm-up.
 * @throws ArgumentError if the step is not a non-negative integer.
 * @example
 * ```ts
 * const phases = denseUntil(1000, withErrorFeedback(topKCompressor({ density: 0.001 })));
 * console.log(phases.map(({ fromStep }) => fromStep)); // [0, 1000]
 * console.log(aggregatorForStep(phases, 1000).name); // top-k 0.001 with error feedback
 * ```
 */
export const denseUntil = <State>(step: number, aggregator: Aggregator<State>): readonly AggregatorPhase<State>[] => {
  if (!(Number.isInteger(step) && step >= 0))
    throw new ArgumentError(`denseUntil: step ${step} is not an integer from 0; use 0 for no warm-up`);
  const own: AggregatorPhase<State> = { fromStep: step, aggregator };
  return step === 0 ? [own] : [{ fromStep: 0, aggregator: denseWithStateOf(aggregator) }, own];
};
