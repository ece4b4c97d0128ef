import { type Aggregator, type Bucket, bucketOf } from "../src/index.ts";
import { stepperOf } from "./stepper.ts";
import type { Axes } from "./world.ts";

export const flatBucket = (n: number): Bucket => bucketOf([{ path: "flat", shape: [n] }]);

export interface RankResult {
  readonly mean: number[];
  readonly sent: number[];
}

/** Runs one aggregation in f32. Returns the mean and the sent part of each rank; −0 becomes 0. */
export const aggregateWorld = (
  aggregator: Aggregator,
  gradients: readonly (readonly number[])[],
  axes?: Axes,
): RankResult[] => {
  const world = stepperOf(aggregator, flatBucket(gradients[0]!.length), gradients.length, { axes, keyed: false });
  const { mean, sent } = world.step(gradients, world.init());
  const numbers = (values: Float64Array): number[] => Array.from(values, (value) => value + 0);
  return gradients.map((_, rank) => ({ mean: numbers(mean[rank]!), sent: numbers(sent[rank]!) }));
};
