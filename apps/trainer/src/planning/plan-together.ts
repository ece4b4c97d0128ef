import { everyRankAxis, expertAxis, type Job, replicasAxisOf } from "@skein/job/node";
import { millisecondsText } from "@skein/report";
import { type Aggregator, bucketOf, type BucketTensor, specsByPath } from "@skein/compressors";
import {
  type BucketedPlan,
  buildCompression,
  type ExchangePlan,
  type Parts,
  stateSpecs,
  trainedOf,
} from "@skein/step/node";
import { ArgumentError, type BucketPlan } from "@skein/tensor-core";
import { fitSlowdown } from "@skein/cost-model/calibration";
import {
  type GradientProfile,
  type LinearCollectiveModel,
  onePerTensor,
  type ProfiledTensor,
  simultaneousTimeline,
  type Slowdown,
} from "@skein/cost-model";
import {
  type IdleBuckets,
  type LagsOptions,
  planMgWfbp,
  planMgWfbpOptimal,
  planIdleBuckets,
  planLags,
  planSimultaneous,
} from "@skein/cost-model/planners";
import { type Agree, agreement } from "./agree.ts";
import { type ExpertLayerTimes, layerNumbers, layersFrom, stretchesOf } from "./expert-layers.ts";
import { measureCollectives } from "./measure-collectives.ts";
import { agreedModel, measureAllToAlls } from "./measure-exchange.ts";
import { isAloneOn, measureProfile, profileFrom, profileNumbers } from "./measure-profile.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** A plan, and a message about the plan for the user. */
export interface AgreedPlan {
  readonly plan: ExchangePlan;
  readonly remark: string;
}

/**
 * Returns the size in bytes of an equivalent dense all-reduce over all ranks, in which each rank sends as many bytes as
 * the compressor sends for a tensor.
 *
 * @param among Number of ranks over which the tensor is averaged.
 */
const asAllReduce = (
  compressor: Aggregator,
  { path, shape }: BucketTensor,
  { among, ranks }: { readonly among: number; readonly ranks: number },
): number => (compressor.bytesSent(bucketOf([{ path, shape }]), among) * ranks) / (2 * (ranks - 1));

/**
 * Chooses the density of each tensor's compressed gradient. Returns densities by path: a number from the job's minimum
 * to its maximum, or 1 for a tensor that is sent dense.
 */
export const densitiesOf = (
  { minDensity, maxDensity }: { readonly minDensity: number; readonly maxDensity: number },
  profile: GradientProfile,
  options: Omit<LagsOptions, "minDensity">,
): NonNullable<ExchangePlan["densities"]> =>
  Object.fromEntries(
    planLags(profile, { ...options, minDensity }).map(({ path, density }) => [
      path,
      density === 1 ? 1 : Math.min(density, maxDensity),
    ]),
  );

const formatModel = ({ startupSeconds, secondsPerByte }: LinearCollectiveModel, what: string): string =>
  `${what} takes ${millisecondsText(startupSeconds)} + ${millisecondsText(secondsPerByte * 2 ** 20)} per MiB`;

/** Times from which a plan is made: measured before a run, or estimated for a dry run. */
export interface ExchangeTimes {
  /** Profile of the dense gradients, in the order in which gradients become ready. */
  readonly dense: GradientProfile;
  readonly allReduce: LinearCollectiveModel;
  /** Time of an all-gather. Absent: densities are not planned. */
  readonly allGather?: LinearCollectiveModel | undefined;
  readonly slowdown: Slowdown;
  /** Expert layers and the time of their all-to-alls. Absent: buckets do not depend on experts. */
  readonly experts?:
    | { readonly layers: readonly ExpertLayerTimes[]; readonly allToAll: LinearCollectiveModel }
    | undefined;
}

/** Planned buckets and densities, with the data from which they were chosen. */
export interface Decision {
  readonly plan: BucketedPlan;
  /** Profile of the gradients that are sent, with sizes in bytes after compression. */
  readonly profile: GradientProfile;
  /** Buckets of the gradients that are sent. `plan` also contains the buckets of gradients that stay on one rank. */
  readonly sent: BucketPlan;
  /**
   * Buckets that were planned to fill idle network time around expert layers. Absent unless the job sets
   * `buckets: {kind: moe-idle}`.
   */
  readonly idle?: IdleBuckets | undefined;
}

/**
 * Chooses which gradients are sent together in a bucket, and the density of each gradient. Tensors that are averaged
 * over different ranks are in different buckets. The gradient of a tensor that only one rank holds is not sent; its
 * bucket is dense, follows all other buckets, and waits for no other rank.
 *
 * @param unplanned Components of the job that were built without a plan.
 * @throws ArgumentError if buckets depend on expert layers, and no expert layer is known.
 */
export const decidePlan = (job: Job, unplanned: Parts, times: ExchangeTimes): Decision => {
  const { dense, allReduce, allGather, slowdown } = times;
  const specs = specsByPath(trainedOf(unplanned, stateSpecs(unplanned).params));
  const { compression, ranks } = job;
  const mergeClassOf = replicasAxisOf(unplanned);
  const isAlone = isAloneOn(unplanned);
  const amongOf = (path: string): number => unplanned.mesh[mergeClassOf(path)] ?? 1;
  const densities =
    compression.kind === "lags"
      ? densitiesOf(compression, dense, { worldSize: amongOf, allReduce, allGather: allGather! })
      : undefined;
  const compressor = buildCompression(
    compression,
    densities && { buckets: unplanned.buckets, densities },
  )(Number.MAX_SAFE_INTEGER);
  const profile = without(dense, isAlone, ({ path, ...tensor }) => {
    const bytes = asAllReduce(compressor, { path, shape: specs.get(path)!.shape }, { among: amongOf(path), ranks });
    return { ...tensor, path, bytes };
  });
  const idle = job.buckets.kind === "moe-idle" ? idleBuckets(profile, mergeClassOf, times) : undefined;
  const sent = idle?.buckets ?? bucketsFor(job, profile, { allReduce, slowdown, mergeClassOf });
  const unsent = dense.tensors.filter(({ path }) => isAlone(path)).map(({ path }) => [path]);
  return { plan: { buckets: [...sent, ...unsent], ...(densities && { densities }) }, profile, sent, idle };
};

/**
 * Removes the excluded tensors from a gradient profile, and replaces each remaining tensor by the result of `priced`.
 * The backward time of a removed tensor is added to the next tensor.
 */
const without = (
  { tensors }: GradientProfile,
  isExcluded: (path: string) => boolean,
  priced: (tensor: ProfiledTensor) => ProfiledTensor,
): GradientProfile => {
  let before = 0;
  return {
    tensors: tensors.flatMap((tensor) => {
      const backwardSeconds = before + tensor.backwardSeconds;
      before = isExcluded(tensor.path) ? backwardSeconds : 0;
      return isExcluded(tensor.path) ? [] : [priced({ ...tensor, backwardSeconds })];
    }),
  };
};

const idleBuckets = (
  profile: GradientProfile,
  mergeClassOf: (path: string) => string,
  { allReduce, experts }: ExchangeTimes,
): IdleBuckets => {
  if (experts === undefined || experts.layers.length === 0)
    throw new ArgumentError(
      "buckets: {kind: moe-idle} needs the times at which tokens are sent to experts, but this step sends none; use buckets: {kind: mg-wfbp}",
    );
  const stretches = stretchesOf(experts.layers, profile, experts.allToAll);
  return planIdleBuckets(profile, stretches, allReduce, { mergeClassOf });
};

/**
 * Measures a few steps and the collectives of the job, and chooses the buckets or the densities of gradients. All ranks
 * use the measurements of rank 0, so all ranks make the same plan.
 */
export const planTogether = async (input: ProfileInput): Promise<AgreedPlan> => {
  const { job, parts, backend, communicators } = input;
  const params = trainedOf(parts, stateSpecs(parts).params);
  const axis = everyRankAxis(parts.mesh);
  const agree = agreement(backend, communicators, axis);
  try {
    const own = await measureProfile(input);
    const dense = profileFrom(await agree(profileNumbers(own.profile, params)), params);
    const maxBytes = dense.tensors.reduce((sum, { bytes }) => sum + bytes, 0);
    const fit = (kind: "all-reduce" | "all-gather"): Promise<LinearCollectiveModel> =>
      agreedModel(kind, axis, { backend, communicators, maxBytes }, agree);
    const allReduce = await fit("all-reduce");
    const allGather = job.compression.kind === "lags" ? await fit("all-gather") : undefined;
    const slowdown =
      job.priorities === "spread"
        ? await measureSlowdown(allReduce, axis, { backend, communicators, maxBytes }, agree)
        : noSlowdown;
    const experts =
      job.buckets.kind === "moe-idle" && own.layers.length > 0
        ? {
            layers: layersFrom(await agree(layerNumbers(own.layers))),
            allToAll: (await measureAllToAlls(input, [expertAxis]))[0]!,
          }
        : undefined;
    const { plan, profile, sent, idle } = decidePlan(job, parts, { dense, allReduce, allGather, slowdown, experts });
    const { buckets } = plan;
    const exposed = (other: BucketPlan): string =>
      millisecondsText(simultaneousTimeline(profile, other, allReduce, slowdown).exposedSeconds);
    const atOnce =
      slowdown.length === 1
        ? ""
        : `, and two concurrent all-reduces take ${slowdown[1]!.toPrecision(3)} times as long to transfer`;
    if (idle !== undefined)
      return {
        plan,
        remark: `${dense.tensors.length} gradients in ${buckets.length} buckets next to ${experts!.layers.length} layers of experts; ${formatModel(allReduce, "an all-reduce")}; ${formatModel(experts!.allToAll, "an exchange of tokens")}; expected exposed communication ${millisecondsText(idle.seconds - idle.backwardSeconds)}`,
      };
    return {
      plan,
      remark: `${dense.tensors.length} gradients in ${buckets.length} buckets; ${formatModel(allReduce, "an all-reduce")}${atOnce}; expected exposed communication ${exposed(sent)}, with a bucket per tensor ${exposed(onePerTensor(profile))}`,
    };
  } finally {
    agree.release();
  }
};

/** Slowdown factors for collectives that run one at a time, and so do not slow each other down. */
const noSlowdown: Slowdown = [1];

/**
 * Measures how much two concurrent all-reduces slow each other down on these links. All ranks use the factor measured
 * by rank 0.
 */
const measureSlowdown = async (
  unsent: LinearCollectiveModel,
  axis: string,
  options: Omit<Parameters<typeof measureCollectives>[2], "atOnce">,
  agree: Agree,
): Promise<Slowdown> => {
  const together = await measureCollectives("all-reduce", axis, { ...options, atOnce: 2 });
  const [two] = await agree([fitSlowdown(unsent, together)]);
  return [1, two!];
};

const bucketsFor = (
  { buckets }: Job,
  profile: GradientProfile,
  {
    allReduce,
    slowdown,
    mergeClassOf,
  }: Pick<ExchangeTimes, "allReduce" | "slowdown"> & { readonly mergeClassOf: (path: string) => string },
): BucketPlan => {
  if (buckets.kind !== "mg-wfbp") return onePerTensor(profile);
  switch (buckets.plan) {
    case "exact":
      return planMgWfbpOptimal(profile, allReduce, { mergeClassOf });
    case "greedy":
      return planMgWfbp(profile, allReduce, { mergeClassOf });
    case "simultaneous":
      return planSimultaneous(profile, allReduce, slowdown, { mergeClassOf });
  }
};
