import type { WorldConnection } from "@skein/collectives/node";
import { type DType, NdArray, type Shape } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { type Bucket, lengthOf } from "../../src/index.ts";
import { cycleOf } from "../laws/law.ts";
import type { Row } from "../rows/row.ts";
import { type Stepper, stepperOf } from "../stepper.ts";
import { rows } from "../table.ts";
import { sizedBuckets } from "./sized-buckets.ts";

// Work of the ranks on threads, and of the reference afterwards. Both look up rows in the table, because aggregators
// cannot be posted.

/** Start parameters of a rank's thread. */
export interface RankData {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
}

/** An array in the format in which it is posted to another thread. */
export interface PostedArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly values: readonly number[];
}

export interface PostedStep {
  readonly mean: PostedArray;
  readonly sent: PostedArray;
  readonly state: readonly PostedArray[];
  /** Number of bytes that the communicator has counted as sent. */
  readonly bytesSent: number;
}

/**
 * Results of consecutive steps of one row on one bucket, and the mean of an additional step in which the last rank has
 * a NaN.
 */
export interface PostedWalk {
  readonly first: readonly PostedArray[];
  readonly steps: readonly PostedStep[];
  readonly poisonedMean: PostedArray;
}

export type Answer = { readonly walks: readonly PostedWalk[] } | { readonly error: string };

export const seed = 11;
export const numSteps = 2;

/** Test case of a world: consecutive steps of one row on one bucket. */
export interface WorldWalk {
  readonly row: Row;
  readonly bucket: Bucket;
  readonly inHalves: boolean;
}

/** Test cases that all ranks of a world run, in this order. */
export const worldWalks: readonly WorldWalk[] = rows.flatMap((row) => [
  ...[sizedBuckets[1], sizedBuckets[33], sizedBuckets[1000]].map((bucket) => ({ row, bucket, inHalves: false })),
  ...(row.aggregator.halves === undefined ? [] : [{ row, bucket: sizedBuckets[33], inHalves: true }]),
]);

/**
 * Returns the gradient of one rank in one step. In the first step, values are multiples of 1/4, so that many magnitudes
 * are tied, within a rank and between ranks. In the second step, rank 1 has only zeros. The seeds are chosen so that
 * the gradients of a bucket with one entry do not sum to zero, because errors are relative to the mean.
 */
export const gradientOf = (bucket: Bucket, rank: number, number: number): NdArray => {
  const values = normalArray([lengthOf(bucket)], 2 + 100 * number + rank).toNumbers();
  if (number === 0) return NdArray.from(values.map((value) => Math.round(4 * value) / 4));
  return NdArray.from(number === 1 && rank === 1 ? values.map(() => 0) : values);
};

export const steppersOf = ({ row, bucket, inHalves }: WorldWalk, worldSize: number): Stepper[] =>
  cycleOf(row).map((aggregator) =>
    stepperOf(aggregator, bucket, worldSize, { axes: row.axes?.(worldSize), keyed: row.randomised, inHalves }),
  );

export const toPosted = (array: NdArray): PostedArray => ({
  dtype: array.dtype,
  shape: array.shape,
  values: array.toNumbers(),
});

export const fromPosted = ({ dtype, shape, values }: PostedArray): NdArray => NdArray.from(values, shape, dtype);
