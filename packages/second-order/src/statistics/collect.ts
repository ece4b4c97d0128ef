import {
  add,
  allReduceMean,
  ArgumentError,
  type BucketPlan,
  concat,
  elementCount,
  inPhase,
  multiply,
  reduceMeanToRoot,
  reshape,
  scope,
  split,
  type Tensor,
} from "@skein/tensor-core";
import type { Layer } from "./layer.ts";
import type { LayerSide, LayerStatistic } from "./statistic.ts";
import { packTriangle, unpackTriangle } from "./triangle.ts";

/** Layer statistics of a step, by path of the layer's weight. */
export type Statistics = Readonly<Record<string, LayerStatistic>>;

/** Receives each statistic as soon as it is computed, and returns the collected statistics at the end. */
export interface StatisticsCollector {
  add(layer: Layer, side: LayerSide, value: Tensor): void;
  finish(): Statistics;
}

class StatisticsStore {
  private readonly byPath = new Map<string, { input?: Tensor; gradient?: Tensor }>();

  set(path: string, side: LayerSide, value: Tensor): void {
    const known = this.byPath.get(path) ?? {};
    known[side] = value;
    this.byPath.set(path, known);
  }

  all(): Statistics {
    return Object.fromEntries(this.byPath);
  }
}

/**
 * Returns a collector that stores this rank's statistics without averaging over ranks.
 * @example
 * ```ts
 * console.log(ownStatistics().finish()); // {}
 * ```
 */
export const ownStatistics = (): StatisticsCollector => {
  const store = new StatisticsStore();
  return {
    add: ({ path }, side, value) => store.set(path, side, value),
    finish: () => store.all(),
  };
};

/**
 * Returns a collector of the statistics of the current part of a batch. The collector passes means over the current
 * part and all earlier parts to another collector. All parts of the batch have the same number of samples.
 *
 * @param collector collector that receives the means.
 * @param earlier sums of the earlier parts' statistics, collected with `ownStatistics`.
 * @param numParts number of parts, including the current part.
 */
export const meanOverParts = (
  collector: StatisticsCollector,
  earlier: Statistics,
  numParts: number,
): StatisticsCollector => ({
  add: (layer, side, value) =>
    collector.add(layer, side, multiply(add(earlier[layer.path]![side]!, value), 1 / numParts)),
  finish: () => collector.finish(),
});

/**
 * Returns the name of a layer side (its inputs or output gradients) in a bucket plan, such as `blocks.0.query:input`.
 * @example
 * ```ts
 * console.log(sideName("head.weight", "input")); // head.weight:input
 * ```
 */
export const sideName = (path: string, side: LayerSide): string => `${path}:${side}`;

/**
 * Returns a function that assigns items to buckets of `bucketBytes` in order. Call the function with the size of each
 * item in bytes. The function returns true if the item completes a bucket.
 */
const filling = (bucketBytes: number): ((bytes: number) => boolean) => {
  let openBytes = 0;
  return (bytes) => {
    openBytes += bytes;
    if (openBytes < bucketBytes) return false;
    openBytes = 0;
    return true;
  };
};

/**
 * Returns the buckets that `meanStatistics` uses without a plan, if a step computes the statistics in the given order.
 *
 * @param sides layer sides, each with its name and the number of floats to send (`elements`).
 * @example
 * ```ts
 * const sides = [{ name: "a", elements: 2 }, { name: "b", elements: 1 }, { name: "c", elements: 9 }];
 * console.log(bucketsInOrder(sides, 12)); // [['a', 'b'], ['c']]
 * ```
 */
export const bucketsInOrder = (
  sides: readonly { readonly name: string; readonly elements: number }[],
  bucketBytes: number,
): BucketPlan => {
  const isFullWith = filling(bucketBytes);
  const buckets: string[][] = [];
  let open: string[] = [];
  for (const { name, elements } of sides) {
    open.push(name);
    if (!isFullWith(4 * elements)) continue;
    buckets.push(open);
    open = [];
  }
  return open.length === 0 ? buckets : [...buckets, open];
};

export interface MeanStatisticsOptions {
  /** Mesh axis over whose ranks means are computed. */
  readonly axis: string;
  /**
   * Names (`sideName`) of the layer sides whose statistics are sent together, per bucket. A bucket is sent as soon as
   * its last statistic is computed. Default: statistics in the order of computation, about `bucketBytes` per bucket.
   */
  readonly buckets?: BucketPlan;
  /** Target bucket size without a plan, in bytes. Default: 4 MiB. */
  readonly bucketBytes?: number;
  /** Priority of the collectives, 0 to 3. Default: 0. */
  readonly priority?: number;
  /**
   * Returns the index along `axis` of the only rank that needs the mean of a statistic. Only this rank receives the
   * mean, and about half as many bytes are sent. Undefined: all ranks need the mean. Default: all ranks need all means.
   */
  readonly ownerOf?: (layer: Layer, side: LayerSide) => number | undefined;
}

interface PendingSide {
  readonly layer: Layer;
  readonly side: LayerSide;
  readonly value: Tensor;
}

const isSymmetric = ({ value }: PendingSide): boolean => value.rank >= 2;

/**
 * Computes the means of several statistics over all ranks, in one message. For a symmetric matrix, only one triangle is
 * sent.
 *
 * @param owner index of the rank that receives the means; all other ranks receive zeros. Undefined: all ranks receive
 *   the means.
 */
const meansOf = (
  bucket: readonly PendingSide[],
  owner: number | undefined,
  { axis, priority }: { readonly axis: string; readonly priority: number },
): Tensor[] => {
  const flat = bucket.map((one) => reshape(isSymmetric(one) ? packTriangle(one.value) : one.value, [-1]));
  const message = concat(flat);
  const mean =
    owner === undefined
      ? allReduceMean(message, axis, { priority })
      : reduceMeanToRoot(message, axis, owner, { priority });
  return split(
    mean,
    flat.map(({ shape }) => shape[0]!),
  ).map((part, i) => {
    const one = bucket[i]!;
    const { shape } = one.value;
    if (!isSymmetric(one)) return reshape(part, shape);
    return unpackTriangle(reshape(part, [...shape.slice(0, -2), -1]), shape.at(-1)!);
  });
};

/** Returns the number of floats to send for a statistic: a vector, or triangles. */
export const statisticElements = (shape: readonly number[]): number =>
  shape.length < 2 ? elementCount(shape) : (elementCount(shape.slice(0, -1)) * (shape.at(-1)! + 1)) / 2;

/**
 * Averages statistics over the ranks, in buckets that are sent while the step continues.
 *
 * @throws ArgumentError if the bucket plan omits or repeats a layer side.
 * Cost: one all-reduce per bucket, or one reduce per owner and bucket, with one triangle per matrix.
 * @example
 * ```ts
 * const collector = meanStatistics({ axis: "data", bucketBytes: 2 ** 20 });
 * console.log(collector.finish()); // {}
 * ```
 */
export const meanStatistics = ({
  axis,
  buckets,
  bucketBytes = 4 * 2 ** 20,
  priority = 0,
  ownerOf = () => undefined,
}: MeanStatisticsOptions): StatisticsCollector => {
  const store = new StatisticsStore();
  const sides = buckets?.flat();
  if (sides !== undefined && new Set(sides).size !== sides.length)
    throw new ArgumentError("meanStatistics: the buckets name a side of a layer twice; put each side in one bucket");
  let numSent = 0;
  const send = (bucket: readonly PendingSide[]): void => {
    for (const [owner, own] of Map.groupBy(bucket, ({ layer, side }) => ownerOf(layer, side)))
      inPhase("communication", () =>
        scope(`statistics-${numSent++}`, () =>
          meansOf(own, owner, { axis, priority }).forEach((mean, i) =>
            store.set(own[i]!.layer.path, own[i]!.side, mean),
          ),
        ),
      );
  };
  const byPlan = buckets?.map((names) => ({ missing: new Set(names), bucket: [] as PendingSide[] }));
  let open: PendingSide[] = [];
  const isFullWith = filling(bucketBytes);
  return {
    add: (layer, side, value) => {
      const one = { layer, side, value };
      if (byPlan !== undefined) {
        const name = sideName(layer.path, side);
        const own = byPlan.find(({ missing }) => missing.has(name));
        if (own === undefined)
          throw new ArgumentError(`meanStatistics: ${name} is in no bucket; put each side of each layer in one bucket`);
        own.missing.delete(name);
        own.bucket.push(one);
        if (own.missing.size === 0) send(own.bucket);
        return;
      }
      open.push(one);
      if (!isFullWith(4 * statisticElements(value.shape))) return;
      send(open);
      open = [];
    },
    finish: () => {
      const late = byPlan?.find(({ missing }) => missing.size > 0);
      if (late !== undefined)
        throw new ArgumentError(
          `meanStatistics: the buckets name ${[...late.missing].join(", ")}, which was never computed; name only sides of layers`,
        );
      if (open.length > 0) send(open);
      open = [];
      return store.all();
    },
  };
};
