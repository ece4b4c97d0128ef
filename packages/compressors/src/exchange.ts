import {
  ArgumentError,
  axisIndex,
  concat,
  elementCount,
  flattenTree,
  foldIn,
  inPhase,
  leafPaths,
  reshape,
  scope,
  type Tensor,
  type TensorSpec,
  unflattenTree,
} from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import type { AggregateContext } from "./context.ts";
import type { Aggregator } from "./aggregator.ts";
import { type Bucket, bucketOf, unflattenBucket } from "./bucket.ts";
import { bucketPerTensor, checkBucketPlan, specsByPath } from "./bucket-plan.ts";
import type { BucketPlan } from "@skein/tensor-core";

/** How gradients are compressed, and which of them travel together. */
export interface BucketOptions<State> {
  readonly compressor: Aggregator<State>;
  /** Default: one bucket per tensor. Must be the same in `initExchange` and `exchange`, and on all ranks. */
  readonly buckets?: BucketPlan;
}

/** How gradients are compressed and among whom they are averaged, with what changes from step to step. */
export interface ExchangeOptions<State> extends BucketOptions<State> {
  /**
   * Mesh axis over whose ranks the mean is taken, or that of each path: a parameter that is shared out along one axis
   * is alike along another. Tensors of one bucket have the same.
   */
  readonly axis: string | ((path: string) => string);
  /** u32[2], fresh every step, equal on all ranks: for randomised compressors. */
  readonly key?: Tensor;
  /** u32 scalar, 0 at the first step: for compressors that change with time. */
  readonly step?: Tensor;
  /**
   * Priority of each bucket's collectives, 0 to 3; those of different priorities may be under way at once. Default: 0
   * for all.
   */
  readonly priorities?: readonly number[];
}

/**
 * The buckets of a plan over these parameters.
 *
 * @throws ArgumentError when they do not fit together, or a gradient is not f32.
 */
export const bucketsOf = (params: unknown, plan: BucketPlan): Bucket[] => {
  checkBucketPlan(plan, params);
  const specs = specsByPath(params);
  for (const [path, { dtype }] of specs) {
    if (dtype !== "f32")
      throw new ArgumentError(
        `the gradient of "${path}" is ${dtype}, but gradients are exchanged in f32; cast it first`,
      );
  }
  return plan.map((bucket) => bucketOf(bucket.map((path) => ({ path, shape: specs.get(path)!.shape }))));
};

/** State of the compressor for each bucket: residuals and the like. Traced. */
export const initExchange = <State>(
  params: unknown,
  { compressor, buckets = bucketPerTensor(params) }: BucketOptions<State>,
): State[] => bucketsOf(params, buckets).map((bucket) => compressor.init(bucket));

/**
 * Lay the tensors of each bucket end to end, and hand them with their context to `visit`, within a scope of the
 * bucket's number.
 */
const eachBucket = <P, State, T>(
  gradients: P,
  residuals: readonly State[],
  options: ExchangeOptions<State>,
  visit: (flat: Tensor, residual: State, bucket: Bucket, context: AggregateContext) => T,
): T[] => {
  const { buckets = bucketPerTensor(gradients) } = options;
  const planned = bucketsOf(gradients, buckets);
  if (residuals.length !== planned.length) {
    throw new ArgumentError(
      `${residuals.length} residuals were given for ${planned.length} buckets; initExchange and exchange must be given one bucket plan`,
    );
  }
  const byPath = leavesByPath<Tensor>(gradients);
  return planned.map((bucket, i) =>
    exchanging(i, () => {
      const flat = concat(bucket.tensors.map(({ path, shape }) => reshape(byPath.get(path)!, [elementCount(shape)])));
      return visit(flat, residuals[i]!, bucket, contextOf(options, bucket, i));
    }),
  );
};

/** Name what a bucket's exchange computes. */
const exchanging = <T>(bucket: number, fn: () => T): T =>
  inPhase("communication", () => scope(`exchange-${bucket}`, fn));

/** The axis along which the tensors of a bucket are averaged. */
const axisOf = (axis: ExchangeOptions<unknown>["axis"], { tensors }: Bucket, index: number): string => {
  if (typeof axis === "string") return axis;
  const [first, ...others] = tensors.map(({ path }) => ({ path, axis: axis(path) }));
  const other = others.find((one) => one.axis !== first!.axis);
  if (other !== undefined)
    throw new ArgumentError(
      `bucket ${index} has "${first!.path}", whose mean is taken over axis "${first!.axis}", and "${other.path}", whose is over "${other.axis}"; a bucket travels as one: put them into two`,
    );
  return first!.axis;
};

const contextOf = <State>(
  { axis: axes, key, step, priorities }: ExchangeOptions<State>,
  bucket: Bucket,
  index: number,
): AggregateContext => {
  const axis = axisOf(axes, bucket, index);
  return {
    axis,
    ...(step && { step }),
    ...(key && { key: foldIn(key, index), rank: axisIndex(axis) }),
    ...(priorities && { collective: { priority: priorities[index] } }),
  };
};

const gradientsFrom = <P>(like: P, buckets: readonly Bucket[], means: readonly Tensor[]): P => {
  const byPath = new Map(
    buckets.flatMap((bucket, i) =>
      unflattenBucket(means[i]!, bucket).map((mean, j) => [bucket.tensors[j]!.path, mean] as const),
    ),
  );
  return unflattenTree(
    flattenTree(like).structure,
    leafPaths(like).map((path) => byPath.get(path)!),
  );
};

/**
 * Turn each rank's gradients into their mean over the ranks of `axis`, bucket by bucket: lay the tensors of a bucket
 * end to end and have the compressor aggregate them. With one rank it is applied all the same, so that runs of any size
 * follow one rule.
 *
 * @param gradients tree of f32 tensors.
 * @param residuals what `initExchange` or the last step returned.
 * @returns the mean gradients, equal bit for bit on all ranks, and the new residuals, each rank's own.
 * @throws ArgumentError when plan, residuals and gradients do not fit together.
 * Cost: `exchangeBytes`.
 * @example const [mean, residuals] = exchange(gradients, state.residuals, { axis: "data", compressor, buckets });
 */
export const exchange = <P, State>(
  gradients: P,
  residuals: readonly State[],
  options: ExchangeOptions<State>,
): [mean: P, residuals: State[]] => {
  const results = eachBucket(gradients, residuals, options, (flat, residual, bucket, context) => ({
    bucket,
    ...options.compressor.aggregate(flat, residual, bucket, context),
  }));
  return [
    gradientsFrom(
      gradients,
      results.map(({ bucket }) => bucket),
      results.map(({ mean }) => mean),
    ),
    results.map(({ state }) => state),
  ];
};

/**
 * The first half of `exchange`, as soon as gradients are ready: with DeAR, a reduce-scatter. A compressor without
 * halves does all of its work here.
 *
 * @returns what `finishExchange` needs, per bucket, to be carried into the next step; and the new residuals.
 * Source: Zhang et al. 2023, arXiv 2302.12445 (DeAR).
 */
export const beginExchange = <P, State>(
  gradients: P,
  residuals: readonly State[],
  options: ExchangeOptions<State>,
): [pending: unknown[], residuals: State[]] => {
  const { compressor } = options;
  const results = eachBucket(gradients, residuals, options, (flat, residual, bucket, context) => {
    if (compressor.halves !== undefined) return compressor.halves.begin(flat, residual, bucket, context);
    const { mean, state } = compressor.aggregate(flat, residual, bucket, context);
    return { pending: mean, state };
  });
  return [results.map(({ pending }) => pending), results.map(({ state }) => state)];
};

/**
 * The second half: the mean gradients of what `beginExchange` left, all buckets of the first tensors first, since they
 * are needed first.
 *
 * @param like tree of the gradients' specs.
 */
export const finishExchange = <P, State>(like: P, pending: readonly unknown[], options: ExchangeOptions<State>): P => {
  const { compressor, buckets = bucketPerTensor(like) } = options;
  const planned = bucketsOf(like, buckets);
  const means = planned
    .map((bucket, i) => ({ bucket, i }))
    .toReversed()
    .map(({ bucket, i }) =>
      exchanging(i, () =>
        compressor.halves === undefined
          ? (pending[i] as Tensor)
          : compressor.halves.finish(pending[i], bucket, contextOf(options, bucket, i)),
      ),
    )
    .toReversed();
  return gradientsFrom(like, planned, means);
};

/** Bytes that a rank sends in one step, averaged over the ranks. */
export const exchangeBytes = <State>(
  params: unknown,
  { compressor, buckets = bucketPerTensor(params) }: BucketOptions<State>,
  worldSize: number,
): number => bucketsOf(params, buckets).reduce((bytes, bucket) => bytes + compressor.bytesSent(bucket, worldSize), 0);

/** Bytes that a rank would send in one step by dense all-reduce in f32: `2(P−1)/P · 4n`. */
export const denseBytes = (params: unknown, worldSize: number): number => {
  const elements = flattenTree<TensorSpec>(params).leaves.reduce((count, { shape }) => count + elementCount(shape), 0);
  return ((2 * (worldSize - 1)) / worldSize) * 4 * elements;
};
