import { type Aggregator, beginExchange, initExchange } from "@skein/compressors";
import type { BucketPlan } from "@skein/tensor-core";
import { findLayers, type ModelLayers } from "@skein/second-order";
import {
  type DeviceArray,
  leafPaths,
  full,
  type GradientTransformation,
  type LossScale,
  mapTree,
  type Mesh,
  type MeshPlace,
  type NdArray,
  randomKey,
  type Shape,
  shardAxes,
  type Sharding,
  type Tensor,
  type TensorSpec,
  trace,
  unsharded,
  zerosLike,
} from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { firstPlace, meshOf, replicasAxisOf, samplesAtOnce, shardingOn } from "../job/mesh.ts";
import { buildCurvature } from "../building/build-curvature.ts";
import type { Curvature, CurvatureMode } from "../building/curvature.ts";
import { figureNames } from "./model-figures.ts";
import { withSmoothing } from "../building/label-smoothing.ts";
import { scaledGradients } from "./scaled-gradients.ts";
import { splitOf } from "./loss-of-part.ts";
import type { OwnParts } from "../modules/own-parts.ts";
import { batchSpecs, type AnyModel } from "../task/task.ts";
import { stackDimsOf } from "../building/stacked-parameters.ts";
import { buildLearningRateOf, buildLossScale, buildOptimizer } from "../building/build-optimizer.ts";
import { buildLearningRate } from "../building/build-learning-rate.ts";
import { buildBuckets, buildCompression } from "../building/build-exchange.ts";
import { type Freezing, frozenPaths, trainedOf, withParameters } from "../building/frozen.ts";
import { parameterGroups } from "../building/parameter-groups.ts";
import { type SlicedLeaf, slicedLeaves } from "../building/sharded-optimizer.ts";
import type { ExchangePlan } from "../plans/exchange-plan.ts";
import type { Job, OverlapName, PrioritiesName } from "../job/job.ts";

/** All state of a run. Enters a step and leaves it; a checkpoint is this tree. */
export interface TrainState<Leaf> {
  /** All parameters of the model, with those that are not trained. */
  readonly params: unknown;
  /** Running statistics and the like; the same on all ranks. */
  readonly model: unknown;
  readonly optimizer: unknown;
  /** Running means of the trained parameters, in a tree like theirs, where the job keeps such. Empty otherwise. */
  readonly average: unknown;
  /** With f16 products: the scale of the loss. Empty otherwise. */
  readonly lossScale: unknown;
  /** What compressors keep, per bucket: each rank its own. */
  readonly residuals: readonly unknown[];
  /**
   * With `overlap: dear`: gradients on their way that are not in the parameters yet, per bucket, each rank its own.
   * Empty otherwise.
   */
  readonly pending: readonly unknown[];
  /**
   * With `overlap: dear`: u32 scalar, 1 where `pending` holds the gradients of a step, 0 where it holds nothing. Empty
   * otherwise.
   */
  readonly due: Leaf | [];
  /** u32[2], constant: each step folds its number in. */
  readonly key: Leaf;
  /** u32 scalar, steps done. */
  readonly step: Leaf;
}

/** The things of a job that a step is made of. */
export interface Parts extends Freezing {
  readonly model: AnyModel;
  readonly optimizer: GradientTransformation<unknown>;
  /** The learning rate of the next update, by the optimizer's state; traced. */
  readonly learningRateOf: (optimizerState: unknown) => Tensor;
  /** By the number of updates before the step; all keep the same state. */
  readonly compressorAt: (updates: number) => Aggregator;
  readonly buckets: BucketPlan;
  readonly overlap: OverlapName;
  /** Of each bucket's collectives. */
  readonly priorities: readonly number[];
  readonly lossScale: LossScale | undefined;
  /** Parts that a rank computes its batch in, one after the other, before it exchanges their mean gradient. */
  readonly accumulate: number;
  /** Share of the past in the running mean of parameters, where there is one. */
  readonly averageDecay: number | undefined;
  /** Of optimizers that look at it. */
  readonly curvature: Curvature | undefined;
  readonly ranks: number;
  /** Ranks along each axis. */
  readonly mesh: Mesh;
  /** Parameters of which each rank has a part, and not the whole. */
  readonly sharding: Sharding;
  /** With 1, ranks that hold the same parameters have slices of the optimizer's state. */
  readonly zero: Job["zero"];
  /** Of what the model tells of a step. */
  readonly figureNames: readonly string[];
}

/** What may differ between the steps of a run. Each kind is traced and compiled by itself. */
export interface StepKind {
  readonly compressor: Aggregator;
  readonly mode: CurvatureMode;
}

/**
 * Kind of the next step. @param updates number of updates before it: a step whose update was skipped does not count,
 * and the next one does in its place whatever was due.
 */
export const stepKindAt = ({ compressorAt, curvature }: Parts, updates: number): StepKind => ({
  compressor: compressorAt(updates),
  mode: curvature?.modeAt(updates) ?? "keep",
});

/**
 * Two lanes in turn, or four by the quarter of the model, first layers first. Buckets stand in the order in which they
 * become ready, last layers first.
 */
const prioritiesOf = (name: PrioritiesName, numBuckets: number): number[] =>
  Array.from({ length: numBuckets }, (_, i) => {
    switch (name) {
      case "none":
        return 0;
      case "forward":
        return Math.min(3, Math.floor((4 * i) / numBuckets));
      case "spread":
        return i % 2;
    }
  });

/** A plan whose buckets hold tensors of one axis each: what is averaged over other ranks has a bucket of its own. */
const bucketsApart = (
  plan: BucketPlan,
  on: Pick<Parts, "sharding" | "mesh">,
  priorities: PrioritiesName,
): Pick<Parts, "buckets" | "priorities"> => {
  const buckets = plan.flatMap((bucket) => [...Map.groupBy(bucket, replicasAxisOf(on)).values()]);
  return { buckets, priorities: prioritiesOf(priorities, buckets.length) };
};

/** What the parts of a job are made of. */
export interface PartsInput {
  readonly job: Job;
  readonly model: AnyModel;
  readonly totalSteps: number;
  /** See `scheduleOffsetOf`. Default: 0. */
  readonly scheduleOffset?: number | undefined;
  /** The fields of samples: layers are found in a step on a batch of them. */
  readonly train: { readonly fields: Readonly<Record<string, TensorSpec>> };
  /** What modules of the job make. */
  readonly own?: OwnParts | undefined;
}

/** @param plan what was measured before the run, for jobs whose buckets or densities follow from it. */
export const buildParts = (
  { job, model: plain, totalSteps, scheduleOffset = 0, train, own }: PartsInput,
  plan?: ExchangePlan,
): Parts => {
  const model = withSmoothing(plain, job);
  const mesh = meshOf(job);
  const sharding = shardingOn(mesh, model.sharding ?? unsharded);
  const { params, state } = specsOf((key: Tensor) => model.init(key), mesh, firstPlace(mesh));
  const frozen = frozenPaths(job.freeze, params);
  const trained = trainedOf({ frozen }, params);
  const groups = parameterGroups(job, params, { frozen });
  let layers: ModelLayers | undefined;
  const find = (): ModelLayers =>
    (layers ??= findLayers(
      scaledGradients(model, splitOf({ mesh, accumulate: job.accumulate ?? 1 })),
      [
        trained as never,
        { params, modelState: state, key: keySpec, scale: [], wholeBatch: { rankCount: [], model: state } } as never,
        batchSpecs(train, samplesAtOnce(job)) as never,
      ],
      { mesh },
    ));
  const stackDims = stackDimsOf(job, trained, sharding, find);
  const rate = buildLearningRate(job.learningRate, { totalSteps, offset: scheduleOffset }, own?.schedule);
  const replicaAxis = replicasAxisOf({ sharding, mesh });
  const curvature = buildCurvature(job, rate, { find, stackDims, replicaAxis, groups, plan: plan?.curvature });
  const planned = plan?.buckets ?? buildBuckets(job.buckets, trained, job.overlap);
  return {
    model,
    optimizer: buildOptimizer(job, rate, sharding, {
      groups,
      curvature,
      stackDims,
      replicaAxis,
      own: own?.optimizer,
    }),
    curvature,
    learningRateOf: buildLearningRateOf(rate),
    compressorAt: buildCompression(job.compression, plan, own?.compression),
    ...bucketsApart(planned, { sharding, mesh }, job.priorities),
    overlap: job.overlap,
    lossScale: buildLossScale(job.precision),
    frozen,
    accumulate: job.accumulate ?? 1,
    averageDecay: job.average?.decay,
    ranks: job.ranks,
    mesh,
    sharding,
    zero: job.zero,
    figureNames: figureNames(
      specsOf((key: Tensor) => model.figures?.(model.init(key).state) ?? {}, mesh, firstPlace(mesh)),
    ),
  };
};

const keySpec: NdArray = randomKey(0);

/** The tree of specs that a traced function of a key gives, without running it. */
const specsOf = <T>(fn: (key: Tensor) => T, mesh: Mesh, place: MeshPlace): T => {
  let result: T | undefined;
  trace(
    (key: Tensor) => {
      result = fn(key);
      return result;
    },
    [keySpec as unknown as Tensor],
    { mesh, place },
  );
  return result!;
};

/** What of a state belongs to buckets, before the first step; traced. */
export const initExchangeState =
  (parts: Parts): ((key: Tensor) => Pick<TrainState<Tensor>, "residuals" | "pending" | "due">) =>
  (key) => {
    const params = trainedOf(parts, parts.model.init(key).params);
    const residuals = initExchange(params, { compressor: parts.compressorAt(0), buckets: parts.buckets });
    return {
      residuals,
      ...(parts.overlap === "dear" ? noPending(parts, params, residuals, key) : { pending: [], due: [] }),
    };
  };

/** The state before the first step; traced. @param key u32[2] of the job's seed. */
export const initState =
  (parts: Parts): ((key: Tensor) => TrainState<Tensor>) =>
  (key) => {
    const { params, state } = parts.model.init(key);
    const trained = trainedOf(parts, params);
    return {
      params,
      model: state,
      optimizer: parts.optimizer.init(trained),
      average: parts.averageDecay === undefined ? {} : trained,
      lossScale: parts.lossScale?.init() ?? {},
      ...initExchangeState(parts)(key),
      key,
      step: full([], 0, "u32"),
    };
  };

/** The same parts with other buckets. */
export const withBuckets = (parts: Parts, buckets: BucketPlan, job: Job): Parts => ({
  ...parts,
  ...bucketsApart(buckets, parts, job.priorities),
});

/** Zeros in the shapes of what a step leaves on its way; what would be sent to learn them is never run. */
const noPending = (
  parts: Parts,
  params: unknown,
  residuals: readonly unknown[],
  key: Tensor,
): Pick<TrainState<Tensor>, "pending" | "due"> => {
  const { compressorAt, buckets, priorities } = parts;
  const axis = replicasAxisOf(parts);
  const options = { axis, compressor: compressorAt(0), buckets, priorities, key, step: full([], 0, "u32") };
  const [pending] = beginExchange(params, residuals, options);
  return { pending: mapTree(pending, (leaf: Tensor) => zerosLike(leaf)) as unknown[], due: full([], 0, "u32") };
};

/**
 * What a run has learned so far: the means of its parameters where it keeps such, else the last ones; all parameters of
 * the model.
 */
export const learntParams = <Leaf>({ params, average }: TrainState<Leaf>): unknown => withParameters(params, average);

/** Specs of the state of a rank; the first one unless its place is given. */
export const stateSpecs = (parts: Parts, place: MeshPlace = firstPlace(parts.mesh)): TrainState<TensorSpec> =>
  specsOf(initState(parts), parts.mesh, place);

/** What ranks have each for itself: residuals, and inverses of factors that not all ranks use. */
const isOwn = (path: string): boolean => path.startsWith("residuals.") || /^optimizer(\.\d+)*\.own\./.test(path);

/** Where a state has gradients on their way; they are settled before it is saved. */
const isOnTheWay = (path: string): boolean => path === "due" || path.startsWith("pending.");

/**
 * How the leaf of a state is shared out: parameters, and what the optimizer keeps for each of them in a tree like
 * theirs.
 */
export const stateSharding = (sharding: Sharding, params: unknown): Sharding => {
  const sharedOut = leafPaths(params).filter((path) => sharding(path).length > 0);
  return (path) => {
    const of = /^(params|optimizer|average)\./.test(path)
      ? sharedOut.find((own) => path.endsWith(`.${own}`))
      : undefined;
    return of === undefined ? [] : sharding(of);
  };
};

/** Leaves by path that ranks share out along the same axes. */
export interface PartLeaves<Leaf> {
  readonly axes: readonly string[];
  readonly leaves: ReadonlyMap<string, Leaf>;
}

/** What of a state is saved, by path. */
export interface SavedLeaves<Leaf> {
  /** The same on all ranks. */
  readonly shared: Map<string, Leaf>;
  /** Of parameters that ranks share out along some axes: the same on ranks at one place along these. */
  readonly parts: readonly PartLeaves<Leaf>[];
  /** Of the optimizer's state, what ranks that hold the same parameters have slices of. */
  readonly slices: ReadonlyMap<string, SlicedLeaf & { readonly leaf: Leaf }>;
  /** What a rank has alone, and no other run has a use for. */
  readonly own: Map<string, Leaf>;
}

/** How what a rank holds differs from what others hold. */
export type Layout = Pick<Parts, "sharding" | "mesh" | "zero">;

export const splitLeaves = <Leaf extends { readonly shape: Shape }>(
  state: TrainState<Leaf>,
  { sharding, mesh, zero }: Layout,
): SavedLeaves<Leaf> => {
  const shardsOf = stateSharding(sharding, state.params);
  const entries = [...leavesByPath<Leaf>(state)].filter(([path]) => !isOnTheWay(path));
  const own = entries.filter(([path]) => isOwn(path));
  const sliced =
    zero === 0
      ? new Map<string, SlicedLeaf>()
      : slicedLeaves(new Map(entries), leavesByPath<Leaf>(state.params), {
          axisOf: replicasAxisOf({ sharding, mesh }),
          mesh,
        });
  const slices = entries.flatMap(([path, leaf]) => {
    const slice = sliced.get(path);
    return slice === undefined ? [] : [[path, { ...slice, leaf }] as const];
  });
  const others = entries.filter(([path]) => !isOwn(path) && !sliced.has(path));
  const axesOfLeaf = (path: string): readonly string[] => shardAxes(shardsOf(path));
  const byAxes = [...Map.groupBy(others, ([path]) => axesOfLeaf(path).join()).values()].map((some) => ({
    axes: axesOfLeaf(some[0]![0]),
    leaves: new Map(some),
  }));
  return {
    shared: byAxes.find(({ axes }) => axes.length === 0)?.leaves ?? new Map<string, Leaf>(),
    parts: byAxes.filter(({ axes }) => axes.length > 0),
    slices: new Map(slices),
    own: new Map(own),
  };
};

/**
 * Steps by which the learning rate is ahead of the updates made, after the batch of a run has changed. The
 * schedule of a job with `epochs` follows the samples seen, that of a job with `steps` the updates.
 */
export const scheduleOffsetOf = ({ steps }: Pick<Job, "steps">, stepOffset: number): number =>
  steps === undefined ? stepOffset : 0;

/** Steps of a job: given, or its epochs. */
export const totalStepsOf = (job: Job, stepsPerEpoch: number): number => job.steps ?? job.epochs! * stepsPerEpoch;

export type DeviceState = TrainState<DeviceArray>;
