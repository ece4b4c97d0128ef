import { initExchange } from "@skein/compressors";
import type { Model } from "@skein/models";
import {
  type DeviceArray,
  flattenTree,
  full,
  type GradientTransformation,
  leafPaths,
  type LossScale,
  type NdArray,
  randomKey,
  type Tensor,
  type TensorSpec,
  trace,
} from "@skein/tensor-core";
import type { BucketPlan, Compressor } from "@skein/compressors";
import { buildBuckets, buildCompressor, buildLossScale, buildModel, buildOptimizer } from "./build.ts";
import type { Job } from "./job.ts";

/** The mesh axis along which ranks share the batch. */
export const dataAxis = "data";

/** All state of a run. Enters a step and leaves it; a checkpoint is this tree. */
export interface TrainState<Leaf> {
  readonly params: unknown;
  /** Running statistics and the like; the same on all ranks. */
  readonly model: unknown;
  readonly optimizer: unknown;
  /** With f16 products: the scale of the loss. Empty otherwise. */
  readonly lossScale: unknown;
  /** What compressors keep, per bucket: each rank its own. */
  readonly residuals: readonly unknown[];
  /** u32[2], constant: each step folds its number in. */
  readonly key: Leaf;
  /** u32 scalar, steps done. */
  readonly step: Leaf;
}

/** The things of a job that a step is made of. */
export interface Parts {
  readonly model: Model;
  readonly optimizer: GradientTransformation<unknown>;
  readonly compressor: Compressor;
  readonly buckets: BucketPlan;
  readonly lossScale: LossScale | undefined;
  readonly ranks: number;
}

/** @param inputs spec of one sample. */
export const buildParts = (job: Job, inputs: { readonly shape: readonly number[] }, totalSteps: number): Parts => {
  const model = buildModel(job.model, inputs);
  const params = specsOf((key: Tensor) => model.init(key).params);
  return {
    model,
    optimizer: buildOptimizer(job, totalSteps),
    compressor: buildCompressor(job.compression),
    buckets: buildBuckets(job.buckets, params),
    lossScale: buildLossScale(job.precision),
    ranks: job.ranks,
  };
};

const keySpec: NdArray = randomKey(0);

/** The tree of specs that a traced function of a key gives, without running it. */
const specsOf = <T>(fn: (key: Tensor) => T): T => {
  let result: T | undefined;
  trace(
    (key: Tensor) => {
      result = fn(key);
      return result;
    },
    [keySpec as unknown as Tensor],
  );
  return result!;
};

/** The state before the first step; traced. @param key u32[2] of the job's seed. */
export const initState =
  ({ model, optimizer, compressor, buckets, lossScale }: Parts): ((key: Tensor) => TrainState<Tensor>) =>
  (key) => {
    const { params, state } = model.init(key);
    return {
      params,
      model: state,
      optimizer: optimizer.init(params),
      lossScale: lossScale?.init() ?? {},
      residuals: initExchange(params, { compressor, buckets }),
      key,
      step: full([], 0, "u32"),
    };
  };

export const stateSpecs = (parts: Parts): TrainState<TensorSpec> => specsOf(initState(parts));

const isOwn = (path: string): boolean => path.startsWith("residuals.");

/** Leaves by path, in two groups: what all ranks share, and what a rank has alone. */
export const splitLeaves = <Leaf>(state: TrainState<Leaf>): { readonly shared: Map<string, Leaf>; readonly own: Map<string, Leaf> } => {
  const { leaves } = flattenTree<Leaf>(state);
  const entries = leafPaths(state).map((path, i): [string, Leaf] => [path, leaves[i]!]);
  return { shared: new Map(entries.filter(([path]) => !isOwn(path))), own: new Map(entries.filter(([path]) => isOwn(path))) };
};

/** Steps of a job: given, or its epochs. */
export const totalStepsOf = (job: Job, stepsPerEpoch: number): number => job.steps ?? job.epochs! * stepsPerEpoch;

export type DeviceState = TrainState<DeviceArray>;
