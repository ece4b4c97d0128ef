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

/** Gradient compressor and bucket plan. */
export interface BucketOptions<State> {
  readonly compressor: Aggregator<State>;
  /**
   * Bucket plan. Must be the same in `initExchange` and `exchange`, and on all ranks. Default: one bucket per tensor.
   */
  readonly buckets?: BucketPlan;
}

/** Compressor, buckets and mesh axis of an exchange, and inputs that change per step. */
export interface ExchangeOptions<State> extends BucketOptions<State> {
  /**
   * Mesh axis over whose ranks the mean is computed, or a function from path to axis. A parameter that is sharded along
   * one axis is replicated along another axis. All tensors of a bucket need the same axis.
   */
  readonly axis: string | ((path: string) => string);
  /** Random key u32[2], new for each step, equal on all ranks. Required by randomized compressors. */
  readonly key?: Tensor;
  /** Step number, u32 scalar, 0 for the first step. Required by compressors that change during training. */
  readonly step?: Tensor;
  /**
   * Priority of each bucket's collectives, 0 to 3. Collectives of different priorities can be in flight at the same
   * time. Default: 0 for all buckets.
   */
  readonly priorities?: readonly number[];
}

/**
 * Returns the buckets of a plan for a tree of parameters.
 *
 * @throws ArgumentError if the plan does not match the parameters, or a gradient is not f32.
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

/**
 * Returns the compressor's initial state for each bucket, for example an error feedback residual. Traced.
 *
 * @example
 * ```ts
 * const compressor = withErrorFeedback(topKCompressor({ density: 0.5 }));
 * const init = (w: Tensor) => initExchange({ w }, { compressor });
 * const [state] = await evaluate(init, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(state!.residual.toNumbers()); // [0, 0, 0, 0]
 * ```
 */
export const initExchange = <State>(
  params: unknown,
  { compressor, buckets = bucketPerTensor(params) }: BucketOptions<State>,
): State[] => bucketsOf(params, buckets).map((bucket) => compressor.init(bucket));

/**
 * Concatenates the tensors of each bucket, and calls `visit` with the flat vector and its context. The operations of
 * each call are traced in a scope named after the bucket index.
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
      `${residuals.length} residuals were given for ${planned.length} buckets; use the same bucket plan in initExchange and exchange`,
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

/** Runs `fn` in the phase "communication", in a scope named after the bucket. */
const exchanging = <T>(bucket: number, fn: () => T): T =>
  inPhase("communication", () => scope(`exchange-${bucket}`, fn));

/** Returns the axis over which the tensors of a bucket are averaged. */
const axisOf = (axis: ExchangeOptions<unknown>["axis"], { tensors }: Bucket, index: number): string => {
  if (typeof axis === "string") return axis;
  const [first, ...others] = tensors.map(({ path }) => ({ path, axis: axis(path) }));
  const other = others.find((one) => one.axis !== first!.axis);
  if (other !== undefined)
    throw new ArgumentError(
      `bucket ${index} has "${first!.path}", whose mean is taken over axis "${first!.axis}", and "${other.path}", whose mean is taken over axis "${other.axis}"; a bucket has one axis: put them into different buckets`,
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
 * Averages gradients over the ranks of `axis`, bucket by bucket: concatenates the tensors of a bucket, and aggregates
 * them by the compressor. The compressor is applied even with one rank, so that the rule does not depend on the number
 * of ranks.
 *
 * @param gradients tree of f32 tensors.
 * @param residuals result of `initExchange`, or of the previous step.
 * @returns the mean gradients, bit-identical on all ranks, and the new residuals, which differ per rank.
 * @throws ArgumentError if plan, residuals and gradients do not match.
 * Cost: `exchangeBytes`.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(topKCompressor({ density: 0.5 }));
 * const step = (w: Tensor) => {
 *   const residuals = initExchange({ w }, { compressor }); // once per run; later the state of the previous step
 *   return exchange({ w }, residuals, { axis: "data", compressor })[0].w;
 * };
 * console.log((await evaluate(step, referenceBackend())(NdArray.from([1, -4, 3, 2]))).toNumbers()); // [0, -4, 3, 0]
 * ```
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
 * First half of `exchange`, to run as soon as gradients are ready. For a dense all-reduce, this half is a
 * reduce-scatter (DeAR). A compressor without halves does all work in the first half.
 *
 * @returns the input of `finishExchange`, per bucket, to pass to the next step; and the new residuals.
 * @example
 * ```ts
 * const options = { axis: "data", compressor: identityCompressor() };
 * const step = (w: Tensor) => {
 *   const [pending] = beginExchange({ w }, initExchange({ w }, options), options);
 *   return finishExchange({ w }, pending, options).w; // after computing that needs no mean
 * };
 * console.log((await evaluate(step, referenceBackend())(NdArray.from([1, 2]))).toNumbers()); // [1, 2]
 * ```
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
 * Second half of `exchange`: computes the mean gradients from the result of `beginExchange`. Processes the buckets in
 * reverse order of the plan, because a plan usually begins with the last tensors, and the next forward pass needs the
 * first tensors first.
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

/**
 * Returns the number of bytes that a rank sends in one step, averaged over the ranks.
 *
 * @example
 * ```ts
 * const params = { w: NdArray.from(new Float32Array(1000)) };
 * console.log(exchangeBytes(params, { compressor: topKCompressor({ density: 0.01 }) }, 4)); // 240
 * console.log(denseBytes(params, 4)); // 6000
 * ```
 */
export const exchangeBytes = <State>(
  params: unknown,
  { compressor, buckets = bucketPerTensor(params) }: BucketOptions<State>,
  worldSize: number,
): number => bucketsOf(params, buckets).reduce((bytes, bucket) => bytes + compressor.bytesSent(bucket, worldSize), 0);

/**
 * Returns the number of bytes that a rank would send in one step with a dense all-reduce in f32: `2(P−1)/P · 4n`.
 *
 * @example
 * ```ts
 * console.log(denseBytes({ w: NdArray.from(new Float32Array(1000)) }, 4)); // 6000
 * ```
 */
export const denseBytes = (params: unknown, worldSize: number): number => {
  const elements = flattenTree<TensorSpec>(params).leaves.reduce((count, { shape }) => count + elementCount(shape), 0);
  return ((2 * (worldSize - 1)) / worldSize) * 4 * elements;
};
