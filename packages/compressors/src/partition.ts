import { concat, elementCount, foldIn, slice, type Tensor, zeros } from "@skein/tensor-core";
import type { AggregateContext } from "./context.ts";
import { type Aggregated, type Aggregator, widestScope } from "./aggregator.ts";
import { type Bucket, bucketOf, type BucketTensor } from "./bucket.ts";
import { identityCompressor } from "./identity.ts";

/**
 * Whether a tensor has at least two dimensions: a weight, not a bias or a scale.
 *
 * @example
 * ```ts
 * console.log(isMatrix({ path: "w", shape: [2, 3] }), isMatrix({ path: "b", shape: [3] })); // true false
 * ```
 */
export const isMatrix = ({ shape }: BucketTensor): boolean => shape.length >= 2;

/**
 * Returns a predicate for tensors with at least `elements` elements. Compressing small tensors costs more than it
 * saves.
 * @example
 * ```ts
 * const large = partitionAggregator([{ when: hasAtLeast(1000), aggregator: topKCompressor({ density: 0.01 }) }]);
 * console.log(large.name); // top-k 0.01 | identity
 * ```
 */
export const hasAtLeast =
  (elements: number): ((tensor: BucketTensor) => boolean) =>
  ({ shape }) =>
    elementCount(shape) >= elements;

/** Rule that assigns an aggregator to tensors. */
export interface PartitionRule {
  /** Whether the rule applies to a tensor. Must depend on path and shape only, and be the same on all ranks. */
  readonly when: (tensor: BucketTensor) => boolean;
  readonly aggregator: Aggregator;
}

/** Tensors of one bucket with the same aggregator, and their ranges in the bucket. */
interface BucketClass {
  readonly aggregator: Aggregator;
  readonly bucket: Bucket;
  /** Ranges in the bucket's flat vector. Adjacent tensors share one range. */
  readonly pieces: readonly (readonly [begin: number, end: number])[];
}

const classesOf = (bucket: Bucket, choose: (tensor: BucketTensor) => Aggregator): BucketClass[] => {
  const byAggregator = new Map<Aggregator, { tensors: BucketTensor[]; pieces: [number, number][] }>();
  let begin = 0;
  for (const tensor of bucket.tensors) {
    const end = begin + elementCount(tensor.shape);
    const aggregator = choose(tensor);
    const { tensors, pieces } = byAggregator.get(aggregator) ?? { tensors: [], pieces: [] };
    byAggregator.set(aggregator, { tensors, pieces });
    tensors.push(tensor);
    const last = pieces.at(-1);
    if (last?.[1] === begin) last[1] = end;
    else pieces.push([begin, end]);
    begin = end;
  }
  return [...byAggregator].map(([aggregator, { tensors, pieces }]) => ({
    aggregator,
    bucket: bucketOf(tensors),
    pieces,
  }));
};

const take = (flat: Tensor, { pieces }: BucketClass): Tensor =>
  concat(pieces.map(([begin, end]) => slice(flat, [begin], [end])));

/** Joins the flat vectors of all classes to the flat vector of their bucket. Inverse of `take`. */
const putBack = (classes: readonly BucketClass[], flats: readonly Tensor[]): Tensor => {
  if (classes.length === 0) return zeros([0]);
  const pieces = classes.flatMap((one, i) => {
    let at = 0;
    return one.pieces.map(([begin, end]) => {
      const from = at;
      at += end - begin;
      return { begin, end, piece: slice(flats[i]!, [from], [at]) };
    });
  });
  // An empty range is sorted before the range that begins at the same offset.
  return concat(pieces.toSorted((a, b) => a.begin - b.begin || a.end - b.end).map(({ piece }) => piece));
};

const partitionBy = (
  choose: (tensor: BucketTensor) => Aggregator,
  all: readonly Aggregator[],
  name: string,
): Aggregator<readonly unknown[]> => {
  const contextOf = (context: AggregateContext, i: number): AggregateContext =>
    context.key === undefined ? context : { ...context, key: foldIn(context.key, i) };
  const states = (results: readonly { readonly state: unknown }[]): unknown[] => results.map(({ state }) => state);
  return {
    name,
    biased: all.some(({ biased }) => biased),
    scope: widestScope(all.map(({ scope }) => scope)),
    init: (bucket) => classesOf(bucket, choose).map((one) => one.aggregator.init(one.bucket)),
    aggregate: (gradient, state, bucket, context) => {
      const classes = classesOf(bucket, choose);
      const results = classes.map(
        (one, i): Aggregated<unknown> =>
          one.aggregator.aggregate(take(gradient, one), state[i], one.bucket, contextOf(context, i)),
      );
      const join = (part: "mean" | "sent"): Tensor =>
        putBack(
          classes,
          results.map((result) => result[part]),
        );
      return { mean: join("mean"), sent: join("sent"), state: states(results) };
    },
    ...(all.some(({ halves }) => halves) && {
      halves: {
        begin: (gradient, state, bucket, context) => {
          const classes = classesOf(bucket, choose);
          const started = classes.map((one, i) => {
            const args = [take(gradient, one), state[i], one.bucket, contextOf(context, i)] as const;
            if (one.aggregator.halves !== undefined) return one.aggregator.halves.begin(...args);
            const { mean, ...rest } = one.aggregator.aggregate(...args);
            return { pending: mean, ...rest };
          });
          return {
            pending: started.map(({ pending }) => pending),
            sent: putBack(
              classes,
              started.map(({ sent }) => sent),
            ),
            state: states(started),
          };
        },
        finish: (pending, bucket, context) => {
          const classes = classesOf(bucket, choose);
          const means = (pending as readonly unknown[]).map((part, i) => {
            const { aggregator, bucket: own } = classes[i]!;
            return aggregator.halves === undefined
              ? (part as Tensor)
              : aggregator.halves.finish(part, own, contextOf(context, i));
          });
          return putBack(classes, means);
        },
      },
    }),
    bytesSent: (bucket, worldSize) =>
      classesOf(bucket, choose).reduce((bytes, one) => bytes + one.aggregator.bytesSent(one.bucket, worldSize), 0),
  };
};

const namesOf = (aggregators: readonly Aggregator[]): string =>
  aggregators.map(({ name }) => name ?? "unnamed").join(" | ");

/**
 * Partitions the tensors of a bucket into classes. The aggregator of the first matching rule handles a tensor. The
 * fallback handles tensors without a matching rule, by default with a dense all-reduce. The tensors of one aggregator
 * are concatenated in one vector, so top-k selects among all their entries.
 *
 * Error feedback can wrap the partition or single aggregators.
 *
 * Cost: sum of the aggregators' costs for their tensors, in separate messages.
 * @example
 * ```ts
 * const sparse = withErrorFeedback(topKCompressor({ density: 0.01 }));
 * const compressor = partitionAggregator([{ when: isMatrix, aggregator: sparse }]); // biases and scales stay dense
 * const params = { weight: NdArray.from(new Float32Array(1000), [10, 100]), bias: NdArray.from(new Float32Array(10)) };
 * console.log(exchangeBytes(params, { compressor }, 2), denseBytes(params, 2)); // 120 4040
 * ```
 */
export const partitionAggregator = (
  rules: readonly PartitionRule[],
  fallback: Aggregator = identityCompressor(),
): Aggregator<readonly unknown[]> => {
  const all = [...rules.map(({ aggregator }) => aggregator), fallback];
  return partitionBy((tensor) => rules.find(({ when }) => when(tensor))?.aggregator ?? fallback, all, namesOf(all));
};

/**
 * Chooses an aggregator per tensor path, for example with a density per layer from a planner, and a fallback for all
 * other paths. Tensors with the same aggregator object share a vector; use separate objects to keep tensors separate.
 *
 * @example
 * ```ts
 * const compressor = perPath({ "head.weight": withErrorFeedback(topKCompressor({ density: 0.1 })) });
 * const params = { head: { weight: NdArray.from(new Float32Array(100)), bias: NdArray.from(new Float32Array(10)) } };
 * console.log(exchangeBytes(params, { compressor }, 2), denseBytes(params, 2)); // 120 440
 * ```
 * Source: Shi et al. 2020, arXiv 1911.08727 (LAGS), for densities per layer.
 */
export const perPath = (
  aggregators: { readonly [path: string]: Aggregator },
  fallback: Aggregator = identityCompressor(),
): Aggregator<readonly unknown[]> => {
  const all = [...new Set([...Object.values(aggregators), fallback])];
  const named = new Map(Object.entries(aggregators));
  return partitionBy(({ path }) => named.get(path) ?? fallback, all, namesOf(all));
};
