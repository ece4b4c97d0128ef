import {
  acrossHostsAxis,
  type BucketsJob,
  type CompressionJob,
  type DensityWarmup,
  insideHostsAxis,
  type OverlapName,
} from "@skein/job/node";
import { byteLength, InvariantError, type Tensor } from "@skein/tensor-core";
import {
  acpSgdCycle,
  type Aggregator,
  aggregatorForStep,
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
  definePhases,
  isMatrix,
  majorityVoteAggregator,
  msTopKCompressor,
  okTopKAggregator,
  oneBitCompressor,
  partitionAggregator,
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
import { planDear } from "@skein/cost-model/planners";
import type { ExchangePlan } from "../plans/exchange-plan.ts";

/**
 * Builds the aggregators that compress tensors. Successive steps cycle through the aggregators; most jobs have a single
 * aggregator.
 */
const buildCycle = (
  job: CompressionJob,
  density: number,
  plan: ExchangePlan | undefined,
  own: Aggregator | undefined,
): readonly Aggregator[] => {
  // Compressors differ in the type of their state, which this code does not need.
  const withFeedback = <State>(aggregator: Aggregator<State>): Aggregator =>
    ("errorFeedback" in job && job.errorFeedback ? withErrorFeedback(aggregator) : aggregator) as Aggregator;
  const withValues = <Payload extends { readonly values: Tensor }>(compressor: Compressor<[], Payload>): Aggregator => {
    const values = "values" in job ? job.values : undefined;
    if (values === undefined) return withFeedback(compressor);
    return values.kind === "qsgd"
      ? withFeedback(chainCompressors(compressor, qsgdCompressor(values)))
      : withFeedback(chainCompressors(compressor, eightBitCompressor(values)));
  };
  switch (job.kind) {
    case "module":
    case "program": {
      if (own === undefined) throw new InvariantError("a compression was built without its user aggregator");
      return [(job.errorFeedback ?? own.biased) ? (withErrorFeedback(own) as Aggregator) : own];
    }
    case "identity":
      return [identityCompressor({ chunkBytes: job.chunkBytes }) as Aggregator];
    case "top-k":
      return [withValues(topKCompressor({ density }))];
    case "random-k":
      return [withValues(randomKCompressor({ density, scaled: !job.errorFeedback }))];
    case "gaussian-k":
      return [withFeedback(gaussianKCompressor({ density }))];
    case "ms-top-k":
      return [withValues(msTopKCompressor({ density, samplings: job.samplings }))];
    case "g-top-k":
      return [withFeedback(gTopKAggregator({ density }))];
    case "ok-top-k":
      return [withFeedback(okTopKAggregator({ density }))];
    case "hierarchical-top-k": {
      const { ranksPerHost } = job;
      return [
        withFeedback(
          hierarchicalTopKAggregator({ density, ranksPerHost, inside: insideHostsAxis, across: acrossHostsAxis }),
        ),
      ];
    }
    case "threshold":
      return [withFeedback(thresholdCompressor({ threshold: job.threshold, capacity: job.capacity }))];
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
      // Tensors with a planned density of 1 are sent dense: the mean is the same, and no positions are sent.
      const layerwise = (each: number): Aggregator =>
        each === 1 ? (identityCompressor() as Aggregator) : withFeedback(topKCompressor({ density: each }));
      const planned = Object.entries(plan?.densities ?? {}).map(([path, each]) => [path, layerwise(each)] as const);
      return [perPath(Object.fromEntries(planned), layerwise(job.maxDensity)) as Aggregator];
    }
    case "majority-vote":
      return [majorityVoteAggregator() as Aggregator];
    case "scaled-sign":
      return [job.perTensor ? withFeedback(scaledSignPerTensorAggregator()) : withFeedback(scaledSignCompressor())];
    case "one-bit":
      return [withFeedback(oneBitCompressor({ blockSize: job.blockSize }))];
    case "qsgd":
      return [qsgdCompressor({ levels: job.levels, bucketSize: job.bucketSize }) as Aggregator];
    case "tern-grad":
      return [ternGradAggregator({ clip: job.clip === 0 ? Infinity : job.clip }) as Aggregator];
    case "eight-bit":
      return [withFeedback(eightBitCompressor({ blockSize: job.blockSize }))];
    case "agoq":
      return [withFeedback(agoqAggregator({ blockSize: job.blockSize }))];
    case "power-sgd":
      return [withFeedback(powerSgdAggregator({ rank: job.rank, minimumCompression: job.minimumCompression }))];
    case "acp-sgd":
      return acpSgdCycle({ rank: job.rank, minimumCompression: job.minimumCompression }).map(withFeedback);
  }
};

/**
 * Wraps an aggregator so that tensors with fewer than `denseBelow` entries, and vectors if the job sets `denseVectors`,
 * are sent without compression.
 */
const partitionDense = (job: CompressionJob, aggregator: Aggregator): Aggregator => {
  if (job.kind === "identity" || (job.denseBelow === 0 && !job.denseVectors)) return aggregator;
  const isLarge = hasAtLeast(job.denseBelow);
  return partitionAggregator([
    { when: (tensor) => isLarge(tensor) && (isMatrix(tensor) || !job.denseVectors), aggregator },
  ]) as Aggregator;
};

/** Wraps an aggregator so that it is applied to the momentum instead of gradients, if the job sets `momentum`. */
const applyMomentum = (job: CompressionJob, aggregator: Aggregator): Aggregator =>
  job.kind === "identity" || job.kind === "dgc" || job.momentum === 0
    ? aggregator
    : (withMomentum(aggregator, job) as Aggregator);

/**
 * Returns a function from the step number, counted from 0, to the step's aggregator: dense during the warm-up, then
 * with the warm-up densities, then with the final density. All aggregators share one state.
 *
 * @param own user aggregator, if the job names one.
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
    buildCycle(job, density, plan, own).map((one) => partitionDense(job, one)),
  );
  // Each aggregator of the cycle passes through all phases. Momentum is applied in dense phases, too.
  const turns = cycles[0]!.map((first, turn) =>
    definePhases(
      [
        ...denseUntil(warmupSteps, first).slice(0, -1),
        ...cycles.map((cycle, i) => ({ fromStep: warmupSteps + i * stepsEach, aggregator: cycle[turn]! })),
      ].map(({ fromStep, aggregator }) => ({ fromStep, aggregator: applyMomentum(job, aggregator) })),
    ),
  );
  return (step) => aggregatorForStep(turns[Math.max(0, step - warmupSteps) % turns.length]!, step);
};

/** Returns the first bucket size that tuning tries, in bytes: the geometric mean of `minBytes` and `maxBytes`. */
export const firstTunedBytes = ({
  minBytes,
  maxBytes,
}: {
  readonly minBytes: number;
  readonly maxBytes: number;
}): number => Math.round(Math.sqrt(minBytes * maxBytes));

/**
 * Returns buckets of at most `bytes` bytes, filled in the order in which gradients become ready. With DeAR, buckets are
 * filled in the order in which the forward pass needs parameters, so that the first bucket of the forward pass is full.
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

/**
 * Returns the gradient buckets with which a job starts, before any measurement. Planned or tuned buckets replace these
 * buckets later.
 */
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
