import {
  add,
  allGather,
  allReduce,
  ArgumentError,
  axisIndex,
  axisSize,
  concat,
  elementCount,
  flattenTree,
  foldIn,
  leafPaths,
  mapTree,
  multiply,
  reshape,
  scope,
  split,
  type Tensor,
  type TensorSpec,
  unflattenTree,
} from "@skein/tensor-core";
import { type BucketPlan, bucketPerTensor, checkBucketPlan, specsByPath } from "./bucket-plan.ts";
import type { Compressor, EncodeContext } from "./compressor.ts";

export interface BucketOptions<State, Payload> {
  readonly compressor: Compressor<State, Payload>;
  /** Default: one bucket per tensor. Must be the same in `initExchange` and `exchange`, and on all ranks. */
  readonly buckets?: BucketPlan;
}

export interface ExchangeOptions<State, Payload> extends BucketOptions<State, Payload> {
  /** Mesh axis over whose ranks the mean is taken. */
  readonly axis: string;
  /** u32[2], fresh every step, equal on all ranks: for randomised compressors. */
  readonly key?: Tensor;
  /** i32 scalar, 0 at the first step: for compressors that change with time. */
  readonly step?: Tensor;
}

/** Spec of each bucket: its tensors, flat, one after another. */
const bucketSpecs = (params: unknown, plan: BucketPlan): TensorSpec[] => {
  checkBucketPlan(plan, params);
  const specs = specsByPath(params);
  for (const [path, { dtype }] of specs) {
    if (dtype !== "f32")
      throw new ArgumentError(`the gradient of "${path}" is ${dtype}, but gradients are exchanged in f32; cast it first`);
  }
  return plan.map((bucket) => ({ dtype: "f32", shape: [bucket.reduce((count, path) => count + elementCount(specs.get(path)!.shape), 0)] }));
};

/** State of the compressor for each bucket: residuals and the like. Traced. */
export const initExchange = <State, Payload>(
  params: unknown,
  { compressor, buckets = bucketPerTensor(params) }: BucketOptions<State, Payload>,
): State[] => bucketSpecs(params, buckets).map((spec) => compressor.init(spec));

const gatherSum = <State, Payload>(compressor: Compressor<State, Payload>, payload: Payload, axis: string, spec: TensorSpec): Tensor => {
  const numRanks = axisSize(axis);
  const gathered = mapTree(payload, (leaf: Tensor) => allGather(leaf, axis)) as Payload;
  if (compressor.decodeSum !== undefined) return compressor.decodeSum(gathered, numRanks, spec);
  const { leaves, structure } = flattenTree<Tensor>(gathered);
  const parts = leaves.map((leaf) => split(leaf, numRanks));
  const decoded = Array.from({ length: numRanks }, (_, rank) =>
    compressor.decode(
      unflattenTree(
        structure,
        parts.map((part) => part[rank]!),
      ),
      spec,
    ),
  );
  return decoded.reduce((sum, one) => add(sum, one)); // in rank order: the same bits on every rank
};

/**
 * Turn each rank's gradients into their mean over the ranks of `axis`, bucket by bucket: lay the tensors of a bucket end
 * to end, encode, all-reduce or all-gather the payload as the compressor declares, decode, divide by the number of ranks.
 * With one rank the codec is applied all the same, so that runs of any size follow one rule.
 *
 * @param gradients tree of f32 tensors.
 * @param residuals what `initExchange` or the last step returned.
 * @returns the mean gradients, equal bit for bit on all ranks, and the new residuals, each rank's own.
 * @throws ArgumentError when plan, residuals and gradients do not fit together.
 * Cost: `exchangeBytes`.
 * @example const [mean, residuals] = exchange(gradients, state.residuals, { axis: "data", compressor, buckets });
 */
export const exchange = <P, State, Payload>(
  gradients: P,
  residuals: readonly State[],
  options: ExchangeOptions<State, Payload>,
): [mean: P, residuals: State[]] => {
  const { axis, compressor, key, step, buckets = bucketPerTensor(gradients) } = options;
  const specs = bucketSpecs(gradients, buckets);
  if (residuals.length !== specs.length) {
    throw new ArgumentError(
      `${residuals.length} residuals were given for ${specs.length} buckets; initExchange and exchange must be given one bucket plan`,
    );
  }
  const { leaves, structure } = flattenTree<Tensor>(gradients);
  const paths = leafPaths(gradients);
  const byPath = new Map(paths.map((path, i) => [path, leaves[i]!]));
  const means = new Map<string, Tensor>();
  const states = buckets.map((bucket, i) =>
    scope(`exchange-${i}`, () => {
      const tensors = bucket.map((path) => byPath.get(path)!);
      const flat = concat(tensors.map((tensor) => reshape(tensor, [elementCount(tensor.shape)])));
      const context: EncodeContext = { ...(step && { step }), ...(key && { key: foldIn(key, i), rank: axisIndex(axis) }) };
      const { payload, state } = compressor.encode(flat, residuals[i]!, context);
      const sum =
        compressor.aggregation === "gather"
          ? gatherSum(compressor, payload, axis, specs[i]!)
          : compressor.decode(mapTree(payload, (leaf: Tensor) => allReduce(leaf, axis)) as Payload, specs[i]!);
      const numRanks = axisSize(axis);
      const mean = numRanks === 1 ? sum : multiply(sum, 1 / numRanks);
      const parts = split(
        mean,
        tensors.map((tensor) => elementCount(tensor.shape)),
      );
      bucket.forEach((path, j) => means.set(path, reshape(parts[j]!, tensors[j]!.shape)));
      return state;
    }),
  );
  return [
    unflattenTree(
      structure,
      paths.map((path) => means.get(path)!),
    ),
    states,
  ];
};

/** Bytes of a rank's payload in one step, over all buckets. */
export const payloadBytes = <State, Payload>(
  params: unknown,
  { compressor, buckets = bucketPerTensor(params) }: BucketOptions<State, Payload>,
): number => bucketSpecs(params, buckets).reduce((bytes, spec) => bytes + compressor.payloadBytes(spec), 0);

/**
 * Bytes that a rank sends in one step, averaged over the ranks: `2(P−1)/P` of the payload by all-reduce, `P−1` times the
 * payload by all-gather.
 */
export const exchangeBytes = <State, Payload>(params: unknown, options: BucketOptions<State, Payload>, worldSize: number): number => {
  const factor = options.compressor.aggregation === "sum" ? (2 * (worldSize - 1)) / worldSize : worldSize - 1;
  return factor * payloadBytes(params, options);
};

/** Bytes that a rank would send in one step by dense all-reduce in f32: `2(P−1)/P · 4n`. */
export const denseBytes = (params: unknown, worldSize: number): number => {
  const elements = flattenTree<TensorSpec>(params).leaves.reduce((count, { shape }) => count + elementCount(shape), 0);
  return ((2 * (worldSize - 1)) / worldSize) * 4 * elements;
};
