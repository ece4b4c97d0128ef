import { type Aggregator, beginExchange, initExchange } from "@skein/compressors";
import {
  firstCoordinates,
  type Job,
  meshOf,
  type OverlapName,
  type PrioritiesName,
  replicasAxisOf,
  samplesAtOnce,
  shardingOn,
} from "@skein/job/node";
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
  type MeshCoordinates,
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
import { buildCurvature } from "../building/build-curvature.ts";
import type { Curvature, CurvatureMode } from "../building/curvature.ts";
import { figureNames } from "./model-figures.ts";
import { withSmoothing } from "../building/label-smoothing.ts";
import { scaledGradients } from "./scaled-gradients.ts";
import { splitOf } from "./loss-of-part.ts";
import type { OwnParts } from "../building/own-step-parts.ts";
import { batchSpecs, type AnyModel } from "../task/task.ts";
import { stackDimsOf } from "../building/stacked-parameters.ts";
import { buildLearningRateOf, buildLossScale, buildOptimizer } from "../building/build-optimizer.ts";
import { buildLearningRate } from "../building/build-learning-rate.ts";
import { buildBuckets, buildCompression } from "../building/build-exchange.ts";
import { type Freezing, frozenPaths, trainedOf, withParameters } from "../building/frozen.ts";
import { parameterGroups } from "../building/parameter-groups.ts";
import { type SlicedLeaf, slicedLeaves } from "../building/sharded-optimizer.ts";
import type { ExchangePlan } from "../plans/exchange-plan.ts";

/** Complete state of a run: a tree that each step transforms, and that checkpoints save. */
export interface TrainState<Leaf> {
  /** All parameters of the model, including frozen parameters. */
  readonly params: unknown;
  /** State of the model, such as running statistics. Equal on all ranks. */
  readonly model: unknown;
  readonly optimizer: unknown;
  /**
   * Moving averages of the trained parameters, in a tree with the structure of the trained parameters. Empty if the job
   * has no averages.
   */
  readonly average: unknown;
  /** State of the loss scale. Empty unless matrix products are computed in f16. */
  readonly lossScale: unknown;
  /** State of compressors, per bucket. Different on each rank. */
  readonly residuals: readonly unknown[];
  /**
   * Gradients that have not yet been applied to the parameters, per bucket. Different on each rank. Empty unless
   * `overlap: dear`.
   */
  readonly pending: readonly unknown[];
  /** Whether `pending` contains the gradients of a step, 1 or 0, u32 scalar. Empty unless `overlap: dear`. */
  readonly due: Leaf | [];
  /** Random key of the run, u32 [2]. Each step folds its step number into the key. */
  readonly key: Leaf;
  /** Number of completed steps, u32 scalar. */
  readonly step: Leaf;
}

/** Components from which the steps of a job are built. */
export interface Parts extends Freezing {
  readonly model: AnyModel;
  readonly optimizer: GradientTransformation<unknown>;
  /** Returns the learning rate of the next update, from the optimizer's state. Traced. */
  readonly learningRateOf: (optimizerState: unknown) => Tensor;
  /**
   * Returns the compressor of a step. `updates` is the number of updates made before the step. All compressors share
   * one state.
   */
  readonly compressorAt: (updates: number) => Aggregator;
  readonly buckets: BucketPlan;
  readonly overlap: OverlapName;
  /** Priority of the collectives of each bucket. */
  readonly priorities: readonly number[];
  readonly lossScale: LossScale | undefined;
  /** Number of microbatches that a rank computes one after the other before their mean gradient is exchanged. */
  readonly accumulate: number;
  /** Decay of the moving average of parameters: weight of the previous average. Undefined: no moving average. */
  readonly averageDecay: number | undefined;
  /** Curvature computation of a second-order optimizer. Undefined: the optimizer does not use curvature. */
  readonly curvature: Curvature | undefined;
  readonly ranks: number;
  /** Number of ranks along each mesh axis. */
  readonly mesh: Mesh;
  /** Sharding of the parameters that are split over ranks. */
  readonly sharding: Sharding;
  /** ZeRO stage. In stage 1, the optimizer's state is sliced over the ranks that hold the same parameters. */
  readonly zero: Job["zero"];
  /** Names of the metrics that the model computes in a step. */
  readonly figureNames: readonly string[];
}

/** Properties that distinguish the kinds of steps in a run. Each kind is traced and compiled separately. */
export interface StepKind {
  readonly compressor: Aggregator;
  readonly mode: CurvatureMode;
}

/**
 * Returns the kind of the next step.
 *
 * @param updates Number of updates made before the step. A step whose update was skipped is not counted, so the next
 * step is of the same kind.
 */
export const stepKindAt = ({ compressorAt, curvature }: Parts, updates: number): StepKind => ({
  compressor: compressorAt(updates),
  mode: curvature?.modeAt(updates) ?? "keep",
});

/**
 * Returns the priority of each bucket. "spread": 0 and 1 in turn. "forward": 0 to 3 by quarters of the model, highest
 * for the first layers. Buckets are in the order in which gradients become ready, last layers first.
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

/** Splits buckets so that all tensors of a bucket are averaged along the same mesh axis. */
const bucketsByAxis = (
  plan: BucketPlan,
  on: Pick<Parts, "sharding" | "mesh">,
  priorities: PrioritiesName,
): Pick<Parts, "buckets" | "priorities"> => {
  const buckets = plan.flatMap((bucket) => [...Map.groupBy(bucket, replicasAxisOf(on)).values()]);
  return { buckets, priorities: prioritiesOf(priorities, buckets.length) };
};

/** Inputs from which the components of a job are built. */
export interface PartsInput {
  readonly job: Job;
  readonly model: AnyModel;
  readonly totalSteps: number;
  /** Offset, in steps, of the learning-rate schedule from the update count, see `scheduleOffsetOf`. Default: 0. */
  readonly scheduleOffset?: number | undefined;
  /** Specs of the fields of a sample. To find the layers, a step is traced on a batch with these specs. */
  readonly train: { readonly fields: Readonly<Record<string, TensorSpec>> };
  /** User-defined components. Absent: the job names none. */
  readonly own?: OwnParts | undefined;
}

/**
 * Builds the components of a job.
 *
 * @param plan Plan made before the run, for jobs whose buckets or densities depend on measurements.
 */
export const buildParts = (
  { job, model: plain, totalSteps, scheduleOffset = 0, train, own }: PartsInput,
  plan?: ExchangePlan,
): Parts => {
  const model = withSmoothing(plain, job);
  const mesh = meshOf(job);
  const sharding = shardingOn(mesh, model.sharding ?? unsharded);
  const { params, state } = specsOf((key: Tensor) => model.init(key), mesh, firstCoordinates(mesh));
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
    ...bucketsByAxis(planned, { sharding, mesh }, job.priorities),
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
      specsOf((key: Tensor) => model.figures?.(model.init(key).state) ?? {}, mesh, firstCoordinates(mesh)),
    ),
  };
};

const keySpec: NdArray = randomKey(0);

/** Traces a function of a random key, and returns the specs of the function's result. */
const specsOf = <T>(fn: (key: Tensor) => T, mesh: Mesh, coordinates: MeshCoordinates): T => {
  let result: T | undefined;
  trace(
    (key: Tensor) => {
      result = fn(key);
      return result;
    },
    [keySpec as unknown as Tensor],
    { mesh, place: coordinates },
  );
  return result!;
};

/** Returns a function that computes the initial values of the state fields that depend on buckets. Traced. */
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

/**
 * Returns a function that computes the state before the first step. Traced. @param key Random key from the job's seed,
 * u32 [2].
 */
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

/** Returns the components with other buckets. */
export const withBuckets = (parts: Parts, buckets: BucketPlan, job: Job): Parts => ({
  ...parts,
  ...bucketsByAxis(buckets, parts, job.priorities),
});

/**
 * Returns zeros with the shapes of a step's pending gradients. Messages are traced only to get these shapes, and never
 * sent.
 */
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
 * Returns the learned parameters of a run: the moving averages if the run has any, otherwise the current values,
 * together with the frozen parameters of the model.
 */
export const learnedParams = <Leaf>({ params, average }: TrainState<Leaf>): unknown => withParameters(params, average);

/** Returns the specs of a rank's state. @param coordinates Mesh coordinates of the rank. Default: the first rank. */
export const stateSpecs = (
  parts: Parts,
  coordinates: MeshCoordinates = firstCoordinates(parts.mesh),
): TrainState<TensorSpec> => specsOf(initState(parts), parts.mesh, coordinates);

/**
 * Whether a leaf of the state differs between ranks. Such leaves are residuals, and factor inverses that only some
 * ranks use.
 */
const isOwn = (path: string): boolean => path.startsWith("residuals.") || /^optimizer(\.\d+)*\.own\./.test(path);

/** Whether a leaf of the state is a pending gradient. Pending gradients are applied before the state is saved. */
const isPending = (path: string): boolean => path === "due" || path.startsWith("pending.");

/**
 * Returns the sharding of the leaves of a state. Optimizer state and averages are sharded like the parameter to which
 * they belong.
 */
export const stateSharding = (sharding: Sharding, params: unknown): Sharding => {
  const shardedPaths = leafPaths(params).filter((path) => sharding(path).length > 0);
  return (path) => {
    const of = /^(params|optimizer|average)\./.test(path)
      ? shardedPaths.find((own) => path.endsWith(`.${own}`))
      : undefined;
    return of === undefined ? [] : sharding(of);
  };
};

/** Leaves that are sharded along the same mesh axes, by path. */
export interface PartLeaves<Leaf> {
  readonly axes: readonly string[];
  readonly leaves: ReadonlyMap<string, Leaf>;
}

/** Leaves of a state that are saved, by path. */
export interface SavedLeaves<Leaf> {
  /** Leaves that are equal on all ranks. */
  readonly shared: Map<string, Leaf>;
  /** Leaves of sharded parameters. Equal on ranks with the same coordinates along `axes`. */
  readonly parts: readonly PartLeaves<Leaf>[];
  /** Leaves of the optimizer's state that are sliced over the ranks with the same parameters. */
  readonly slices: ReadonlyMap<string, SlicedLeaf & { readonly leaf: Leaf }>;
  /** Leaves owned by this rank. Other ranks, and runs with another layout, cannot use them. */
  readonly own: Map<string, Leaf>;
}

/** Sharding, mesh and ZeRO stage of a run, which determine the leaves of the state that differ between ranks. */
export type Layout = Pick<Parts, "sharding" | "mesh" | "zero">;

export const splitLeaves = <Leaf extends { readonly shape: Shape }>(
  state: TrainState<Leaf>,
  { sharding, mesh, zero }: Layout,
): SavedLeaves<Leaf> => {
  const shardsOf = stateSharding(sharding, state.params);
  const entries = [...leavesByPath<Leaf>(state)].filter(([path]) => !isPending(path));
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
 * Returns the offset, in steps, of the learning-rate schedule from the number of updates made, after the batch size of
 * a run has changed. The schedule of a job with `epochs` depends on the number of processed samples; the schedule of a
 * job with `steps` depends on the number of updates.
 */
export const scheduleOffsetOf = ({ steps }: Pick<Job, "steps">, stepOffset: number): number =>
  steps === undefined ? stepOffset : 0;

/** Returns the number of steps of a job: given in the job, or computed from its epochs. */
export const totalStepsOf = (job: Job, stepsPerEpoch: number): number => job.steps ?? job.epochs! * stepsPerEpoch;

export type DeviceState = TrainState<DeviceArray>;
