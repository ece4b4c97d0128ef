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

/** Statistics of a step, by the path of the layer's weight. */
export type Statistics = Readonly<Record<string, LayerStatistic>>;

/** Where statistics go as soon as each is computed, and what comes out when all are there. */
export interface StatisticsCollector {
  add(layer: Layer, side: LayerSide, value: Tensor): void;
  finish(): Statistics;
}

class Gathered {
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

/** Keep a rank's own statistics as they are. */
export const ownStatistics = (): StatisticsCollector => {
  const gathered = new Gathered();
  return {
    add: ({ path }, side, value) => gathered.set(path, side, value),
    finish: () => gathered.all(),
  };
};

/**
 * Collect the means over several parts of a batch, of equally many samples: this one and those before.
 *
 * @param earlier sums of the earlier parts' statistics, which `ownStatistics` has kept.
 * @param numParts number of parts with this one.
 * @param collector what the means go to.
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

/** The name of one side of a layer in a bucket plan: `blocks.0.query:input`. */
export const sideName = (path: string, side: LayerSide): string => `${path}:${side}`;

/** Tells of things in order whether a bucket is full with each, so that the next one begins another. */
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
 * The buckets in which `meanStatistics` sends sides in this order, where it has no plan.
 *
 * @param sides with `elements`, the floats that travel for each.
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
  /** Mesh axis over whose ranks means are taken. */
  readonly axis: string;
  /**
   * Which sides travel together, by `sideName`; a bucket leaves as soon as its last one is computed. Default: in the
   * order in which they are computed, until a bucket holds `bucketBytes`.
   */
  readonly buckets?: BucketPlan;
  /** Default: 4 MiB. */
  readonly bucketBytes?: number;
  /** Of the collectives, 0 to 3. Default: 0. */
  readonly priority?: number;
  /**
   * The one rank that needs a side: only there is its mean, and about half the bytes travel. Undefined where all need
   * it. Default: all need all.
   */
  readonly ownerOf?: (layer: Layer, side: LayerSide) => number | undefined;
}

interface Waiting {
  readonly layer: Layer;
  readonly side: LayerSide;
  readonly value: Tensor;
}

const isSymmetric = ({ value }: Waiting): boolean => value.rank >= 2;

/**
 * Means over all ranks of several statistics, in one message; of symmetric matrices one triangle travels.
 *
 * @param owner the rank that gets them, all others get zeros; undefined where all do.
 */
const meansOf = (
  bucket: readonly Waiting[],
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

/** Floats that a statistic has as it travels: a vector, or triangles. */
export const statisticElements = (shape: readonly number[]): number =>
  shape.length < 2 ? elementCount(shape) : (elementCount(shape.slice(0, -1)) * (shape.at(-1)! + 1)) / 2;

/**
 * Average statistics over the ranks, in buckets that leave while the step computes on.
 *
 * @throws ArgumentError for a plan that leaves out a side, or has one twice.
 * Cost: one all-reduce per bucket, of the statistics with a triangle of each matrix; or a reduce for each owner in it.
 */
export const meanStatistics = ({
  axis,
  buckets,
  bucketBytes = 4 * 2 ** 20,
  priority = 0,
  ownerOf = () => undefined,
}: MeanStatisticsOptions): StatisticsCollector => {
  const gathered = new Gathered();
  const sides = buckets?.flat();
  if (sides !== undefined && new Set(sides).size !== sides.length)
    throw new ArgumentError("meanStatistics: a side of a layer stands twice in its buckets; put each in one bucket");
  let numSent = 0;
  const send = (bucket: readonly Waiting[]): void => {
    for (const [owner, own] of Map.groupBy(bucket, ({ layer, side }) => ownerOf(layer, side)))
      inPhase("communication", () =>
        scope(`statistics-${numSent++}`, () =>
          meansOf(own, owner, { axis, priority }).forEach((mean, i) =>
            gathered.set(own[i]!.layer.path, own[i]!.side, mean),
          ),
        ),
      );
  };
  const byPlan = buckets?.map((names) => ({ missing: new Set(names), bucket: [] as Waiting[] }));
  let open: Waiting[] = [];
  const isFullWith = filling(bucketBytes);
  return {
    add: (layer, side, value) => {
      const one = { layer, side, value };
      if (byPlan !== undefined) {
        const name = sideName(layer.path, side);
        const own = byPlan.find(({ missing }) => missing.has(name));
        if (own === undefined)
          throw new ArgumentError(`meanStatistics: ${name} stands in no bucket; put each side of each layer in one`);
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
          `meanStatistics: ${[...late.missing].join(", ")} of its buckets was never computed; name sides of layers`,
        );
      if (open.length > 0) send(open);
      open = [];
      return gathered.all();
    },
  };
};
