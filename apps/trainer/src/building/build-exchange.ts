import { byteLength, InvariantError, type Tensor } from "@skein/tensor-core";
import {
  acpSgdCycle,
  type Aggregator,
  aggregatorAt,
  agoqAggregator,
  bucketPerTensor,
  bucketsOfSize,
  chainCompressors,
  type Compressor,
  denseUntil,
  dgcAggregator,
  eightBitCompressor,
  gaussianKCompressor,
  gTopKAggregator,
  hasAtLeast,
  hierarchicalTopKAggregator,
  identityCompressor,
  inPhases,
  isMatrix,
  majorityVoteAggregator,
  msTopKCompressor,
  okTopKAggregator,
  oneBitCompressor,
  partition,
  perPath,
  powerSgdAggregator,
  qsgdCompressor,
  randomKCompressor,
  scaledSignCompressor,
  scaledSignPerTensorAggregator,
  specsByPath,
  ternGradAggregator,
  thresholdCompressor,
  topKCompressor,
  withEf21,
  withErrorFeedback,
  withMomentum,
} from "@skein/compressors";
import type { BucketPlan } from "@skein/tensor-core";
import { planDear } from "@skein/cost-model";
import type { ExchangePlan } from "../plans/exchange-plan.ts";
import type { BucketsJob, CompressionJob, DensityWarmup, OverlapName } from "../job/job.ts";
import { acrossHostsAxis, insideHostsAxis } from "../job/mesh.ts";

/** What compresses the tensors that are compressed: in turns, one after another; mostly one alone. */
const buildCycle = (
  job: CompressionJob,
  density: number,
  plan: ExchangePlan | undefined,
  own: Aggregator | undefined,
): readonly Aggregator[] => {
  // Compressors of different states are of different types; here they are all carried alike.
  const fed = <State>(aggregator: Aggregator<State>): Aggregator =>
    ("errorFeedback" in job && job.errorFeedback ? withErrorFeedback(aggregator) : aggregator) as Aggregator;
  const chained = <Payload extends { readonly values: Tensor }>(compressor: Compressor<[], Payload>): Aggregator => {
    const values = "values" in job ? job.values : undefined;
    if (values === undefined) return fed(compressor);
    return values.kind === "qsgd"
      ? fed(chainCompressors(compressor, qsgdCompressor(values)))
      : fed(chainCompressors(compressor, eightBitCompressor(values)));
  };
  switch (job.kind) {
    case "module":
    case "program": {
      if (own === undefined) throw new InvariantError("a compression was built without what its module makes");
      return [(job.errorFeedback ?? own.biased) ? (withErrorFeedback(own) as Aggregator) : own];
    }
    case "identity":
      return [identityCompressor({ chunkBytes: job.chunkBytes }) as Aggregator];
    case "top-k":
      return [chained(topKCompressor({ density }))];
    case "random-k":
      return [chained(randomKCompressor({ density, scaled: !job.errorFeedback }))];
    case "gaussian-k":
      return [fed(gaussianKCompressor({ density }))];
    case "ms-top-k":
      return [chained(msTopKCompressor({ density, samplings: job.samplings }))];
    case "g-top-k":
      return [fed(gTopKAggregator({ density }))];
    case "ok-top-k":
      return [fed(okTopKAggregator({ density }))];
    case "hierarchical-top-k": {
      const { ranksPerHost } = job;
      return [
        fed(hierarchicalTopKAggregator({ density, ranksPerHost, inside: insideHostsAxis, across: acrossHostsAxis })),
      ];
    }
    case "threshold":
      return [fed(thresholdCompressor({ threshold: job.threshold, capacity: job.capacity }))];
    case "dgc":
      return [
        dgcAggregator({
          density,
          momentum: job.momentum,
          ...(job.clipNorm !== undefined && { clipNorm: job.clipNorm }),
        }) as Aggregator,
      ];
    case "ef21":
      return [withEf21(topKCompressor({ density })) as Aggregator];
    case "lags": {
      // The plan's 1 is dense: the same mean for fewer bytes than all entries with their positions.
      const layerwise = (each: number): Aggregator =>
        each === 1 ? (identityCompressor() as Aggregator) : fed(topKCompressor({ density: each }));
      const planned = Object.entries(plan?.densities ?? {}).map(([path, each]) => [path, layerwise(each)] as const);
      return [perPath(Object.fromEntries(planned), layerwise(job.mostDensity)) as Aggregator];
    }
    case "majority-vote":
      return [majorityVoteAggregator() as Aggregator];
    case "scaled-sign":
      return [job.perTensor ? fed(scaledSignPerTensorAggregator()) : fed(scaledSignCompressor())];
    case "one-bit":
      return [fed(oneBitCompressor({ blockSize: job.blockSize }))];
    case "qsgd":
      return [qsgdCompressor({ levels: job.levels, bucketSize: job.bucketSize }) as Aggregator];
    case "tern-grad":
      return [ternGradAggregator({ clip: job.clip === 0 ? Infinity : job.clip }) as Aggregator];
    case "eight-bit":
      return [fed(eightBitCompressor({ blockSize: job.blockSize }))];
    case "agoq":
      return [fed(agoqAggregator({ blockSize: job.blockSize }))];
    case "power-sgd":
      return [fed(powerSgdAggregator({ rank: job.rank, minimumCompression: job.minimumCompression }))];
    case "acp-sgd":
      return acpSgdCycle({ rank: job.rank, minimumCompression: job.minimumCompression }).map(fed);
  }
};

/** The same, with small tensors and vectors left out, if the job wants it. */
const besideDense = (job: CompressionJob, aggregator: Aggregator): Aggregator => {
  if (job.kind === "identity" || (job.denseBelow === 0 && !job.denseVectors)) return aggregator;
  const isLarge = hasAtLeast(job.denseBelow);
  return partition([
    { when: (tensor) => isLarge(tensor) && (isMatrix(tensor) || !job.denseVectors), aggregator },
  ]) as Aggregator;
};

/** The same for the running mean of gradients, if the job wants it. */
const followed = (job: CompressionJob, aggregator: Aggregator): Aggregator =>
  job.kind === "identity" || job.kind === "dgc" || job.momentum === 0
    ? aggregator
    : (withMomentum(aggregator, job) as Aggregator);

/**
 * The compressor of each step, counted from 0: dense at first, then by rising or falling density, then for good. All
 * keep the same state.
 *
 * @param own what a module makes, where the job names one.
 */
export const buildCompression = (
  job: CompressionJob,
  plan: ExchangePlan | undefined,
  own?: Aggregator,
): ((step: number) => Aggregator) => {
  const warmupSteps = job.kind === "identity" ? 0 : job.warmupSteps;
  const { densities, stepsEach }: DensityWarmup = ("densityWarmup" in job && job.densityWarmup) || {
    densities: [],
    stepsEach: 0,
  };
  const cycles = [...densities, "density" in job ? job.density : 1].map((density) =>
    buildCycle(job, density, plan, own).map((one) => besideDense(job, one)),
  );
  // Those that take turns are followed side by side, each through all phases.
  const turns = cycles[0]!.map((first, turn) =>
    inPhases(
      [
        ...denseUntil(warmupSteps, first).slice(0, -1),
        ...cycles.map((cycle, i) => ({ fromStep: warmupSteps + i * stepsEach, aggregator: cycle[turn]! })),
      ].map(({ fromStep, aggregator }) => ({ fromStep, aggregator: followed(job, aggregator) })), // dense steps too
    ),
  );
  return (step) => aggregatorAt(turns[Math.max(0, step - warmupSteps) % turns.length]!, step);
};

/** Where the search for a bucket size begins. */
export const firstTunedBytes = ({
  leastBytes,
  mostBytes,
}: {
  readonly leastBytes: number;
  readonly mostBytes: number;
}): number => Math.round(Math.sqrt(leastBytes * mostBytes));

/**
 * Buckets of at most so many bytes: filled as gradients become ready; with DeAR as the forward pass needs them, so that
 * its first bucket is a full one.
 */
export const sizedBuckets = (params: unknown, bytes: number, overlap: OverlapName): BucketPlan => {
  if (overlap !== "dear") return bucketsOfSize(params, bytes);
  const tensors = [...specsByPath(params)].map(([path, spec]) => ({
    path,
    bytes: byteLength(spec),
    backwardSeconds: 0,
  }));
  return planDear({ tensors: tensors.reverse() }, bytes);
};

/** Buckets that are known before anything is measured; the others begin with these. */
export const buildBuckets = (job: BucketsJob, params: unknown, overlap: OverlapName): BucketPlan => {
  switch (job.kind) {
    case "per-tensor":
    case "mg-wfbp":
    case "moe-idle":
      return bucketPerTensor(params);
    case "fixed-size":
      return sizedBuckets(params, job.bytes, overlap);
    case "tuned":
      return sizedBuckets(params, firstTunedBytes(job), overlap);
  }
};
