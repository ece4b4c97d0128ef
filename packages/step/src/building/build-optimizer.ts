import type { Job, OptimizerJob, PrecisionJob } from "@skein/job/node";
import { lamb, lars, type StackDims } from "@skein/second-order";
import {
  adam,
  adamw,
  chain,
  clipByGlobalNorm,
  decayMatrices,
  dynamicLossScale,
  type GradientTransformation,
  InvariantError,
  type LossScale,
  momentum,
  nesterov,
  resolveSchedule,
  type Schedule,
  type Sharding,
  type ScheduleState,
  sgd,
  type Tensor,
} from "@skein/tensor-core";
import type { Curvature } from "./curvature.ts";
import { scaleUpdates, decayMaskOf, type ParameterGroups } from "./parameter-groups.ts";
import { shardedOptimizer } from "./sharded-optimizer.ts";

/** Returns the settings of a section of the job without its `kind`. */
const settingsOf = <Part extends { readonly kind: string }>({ kind: _, ...settings }: Part): Omit<Part, "kind"> =>
  settings;

/** Inputs, in addition to the job, from which the optimizer's update rule is built. */
interface RuleInput {
  /** Job settings for single parameters. */
  readonly groups: ParameterGroups;
  /** Returns the number of leading dimensions of a parameter that index separate matrices. */
  readonly stackDims: StackDims;
  /** Returns the mesh axis along which ranks have equal values of the parameter at a path. */
  readonly replicaAxis: (path: string) => string;
  /** Curvature computation of a second-order optimizer. Undefined: the optimizer does not use curvature. */
  readonly curvature: Curvature | undefined;
  /** User optimizer, if the job names one. */
  readonly own: GradientTransformation<unknown> | undefined;
}

const buildRule = (
  job: OptimizerJob,
  learningRate: Schedule,
  { groups, curvature, own, stackDims, replicaAxis }: RuleInput,
): GradientTransformation<unknown> => {
  const mask = decayMaskOf(groups, () => true);
  const matrices = decayMaskOf(groups, decayMatrices);
  switch (job.kind) {
    case "module":
    case "program":
      if (own === undefined) throw new InvariantError("an optimizer was built without its user optimizer");
      return own;
    case "sgd":
      return sgd({ ...settingsOf(job), learningRate, mask });
    case "momentum":
      return momentum({ ...settingsOf(job), learningRate, mask });
    case "nesterov":
      return nesterov({ ...settingsOf(job), learningRate, mask });
    case "adam":
      return adam({ ...settingsOf(job), learningRate });
    case "adamw":
      return adamw({ ...settingsOf(job), learningRate, mask: matrices });
    case "lars":
      return lars({
        ...settingsOf(job),
        learningRate,
        decayMask: matrices,
        stackDims,
        axis: replicaAxis,
      }) as GradientTransformation<unknown>;
    case "lamb":
      return lamb({
        ...settingsOf(job),
        learningRate,
        decayMask: matrices,
        stackDims,
        axis: replicaAxis,
      }) as GradientTransformation<unknown>;
    default:
      if (curvature === undefined) throw new InvariantError("an optimizer was built without its curvature");
      return curvature.rule;
  }
};

export const buildOptimizer = (
  { optimizer, clipNorm, zero }: Job,
  rate: Schedule,
  sharding: Sharding,
  input: RuleInput,
): GradientTransformation<unknown> => {
  const onEachRank = scaleUpdates(buildRule(optimizer, rate, input), input.groups);
  const rule = zero === 1 ? shardedOptimizer(onEachRank, input.replicaAxis) : onEachRank;
  return clipNorm === undefined
    ? rule
    : (chain(clipByGlobalNorm(clipNorm, sharding), rule) as GradientTransformation<unknown>);
};

/**
 * Returns the update counter in an optimizer's state. In the state of a chained optimizer, which is a tree, the last
 * state has the counter.
 */
const updatesIn = (state: unknown): Tensor => {
  const { step } = state as Partial<ScheduleState>;
  return step ?? updatesIn(Object.values(state as object).at(-1));
};

/**
 * Returns a traced function that computes the learning rate of the next update, an f32 scalar, from the state of the
 * job's optimizer.
 */
export const buildLearningRateOf =
  (rate: Schedule): ((optimizerState: unknown) => Tensor) =>
  (state) =>
    resolveSchedule(rate, updatesIn(state));

/** Builds the loss scale; returns undefined if gradients have the range of f32. */
export const buildLossScale = (job: PrecisionJob): LossScale | undefined => {
  switch (job.kind) {
    case "f32":
    case "mixed-bf16":
      return undefined;
    case "mixed-f16":
      return dynamicLossScale({
        initial: job.initialScale,
        growthInterval: job.growthInterval,
        minimum: Math.min(1, job.initialScale),
      });
  }
};
