import { examples, normalArray } from "@skein/testing";
import fc from "fast-check";
import { type Aggregator, type Bucket, bucketOf, lengthOf } from "../../src/index.ts";
import type { Row } from "../rows/row.ts";
import { type Stepper, stepperOf } from "../stepper.ts";

/** A property that every aggregator in the table must have. `check` throws if a row violates the law. */
export interface Law {
  readonly name: string;
  readonly appliesTo: (row: Row) => boolean;
  readonly check: (row: Row) => void;
}

export const always = (): boolean => true;

export const buckets: Readonly<Record<"empty" | "scalar" | "pair" | "vector" | "matrix" | "mixed", Bucket>> = {
  empty: bucketOf([{ path: "e", shape: [0] }]),
  scalar: bucketOf([{ path: "s", shape: [] }]),
  pair: bucketOf([{ path: "p", shape: [2] }]),
  vector: bucketOf([{ path: "v", shape: [33] }]),
  matrix: bucketOf([{ path: "w", shape: [7, 5] }]),
  mixed: bucketOf([
    { path: "bias", shape: [4] },
    { path: "dense", shape: [5, 4] },
    { path: "empty", shape: [0, 3] },
    { path: "kernel", shape: [2, 2, 2, 3] },
    { path: "shift", shape: [] },
  ]),
};

/** Returns the aggregators of a row, one per step of its cycle, modified by `wrap`. */
export const cycleOf = (row: Row, wrap: (aggregator: Aggregator) => Aggregator = (own) => own): Aggregator[] =>
  (row.cycle ?? [row.aggregator]).map(wrap);

/** Returns a function that returns the steppers of a row's aggregators, traced once per bucket and number of ranks. */
export const worldsOf = (
  row: Row,
  cycle: readonly Aggregator[],
  inHalves = false,
): ((bucket: Bucket, numRanks: number) => Stepper[]) => {
  const traced = new Map<Bucket, Stepper[][]>();
  return (bucket, numRanks) => {
    const ofBucket = traced.get(bucket) ?? [];
    traced.set(bucket, ofBucket);
    ofBucket[numRanks] ??= cycle.map((aggregator) =>
      stepperOf(aggregator, bucket, numRanks, { axes: row.axes?.(numRanks), keyed: row.randomised, inHalves }),
    );
    return ofBucket[numRanks];
  };
};

// Few distinct values, so that ties are common; plus outliers.
const value = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 2),
  fc.float({ noNaN: true, min: -100, max: 100 }),
  fc.constantFrom(1e4, -1e4, 1e-30),
);

export interface Drawn {
  readonly bucket: Bucket;
  readonly numRanks: number;
  /** Gradients, one per rank. */
  readonly gradients: readonly (readonly number[])[];
  readonly seed: number;
}

interface Room {
  readonly among?: readonly Bucket[];
  readonly ranks?: readonly number[];
  /** Returns a generator of one gradient with `length` entries. */
  readonly gradient?: (length: number) => fc.Arbitrary<number[]>;
}

const anyGradient = (length: number): fc.Arbitrary<number[]> =>
  fc.array(value, { minLength: length, maxLength: length });

/** Returns a generator of gradients without ties. */
export const smoothGradient = (length: number): fc.Arbitrary<number[]> =>
  fc.nat(1e6).map((seed) => normalArray([length], seed).toNumbers());

/** Generates a bucket, a number of ranks, and a gradient per rank. */
export const drawn = ({
  among = [buckets.scalar, buckets.pair, buckets.vector, buckets.matrix, buckets.mixed],
  ranks = [1, 2, 3, 4, 6],
  gradient = anyGradient,
}: Room = {}): fc.Arbitrary<Drawn> =>
  fc
    .tuple(fc.constantFrom(...among), fc.constantFrom(...ranks), fc.nat(1e6))
    .chain(([bucket, numRanks, seed]) =>
      fc
        .array(gradient(lengthOf(bucket)), { minLength: numRanks, maxLength: numRanks })
        .map((gradients) => ({ bucket, numRanks, gradients: gradients.map((own) => own.map(Math.fround)), seed })),
    );

/** Tests a property with a fixed seed, so that failures are reproducible. */
export const holds = <T>(
  arbitrary: fc.Arbitrary<T>,
  check: (value: T) => void,
  numRuns: number = examples(3, 20),
): void => {
  fc.assert(fc.property(arbitrary, check), { numRuns, seed: 1 });
};

/** Smallest normal f32. Smaller numbers lose precision, and devices may replace them by zero. */
export const smallestNormal: number = 2 ** -126;

export const greatest = (...vectors: readonly ArrayLike<number>[]): number =>
  vectors.reduce((most, vector) => Array.from(vector).reduce((own, v) => Math.max(own, Math.abs(v)), most), 0);

/**
 * Compares two arrays element by element. Throws an error that names the first element with a difference above
 * `tolerance`; a NaN always differs.
 */
export const expectNear = (
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
  what: string,
): void => {
  if (actual.length !== expected.length) throw new Error(`${what}: ${actual.length} elements, not ${expected.length}`);
  for (let i = 0; i < expected.length; i++) {
    if (!(Math.abs(actual[i]! - expected[i]!) <= tolerance))
      throw new Error(`${what}: element ${i} is ${actual[i]}, not ${expected[i]} to ${tolerance}`);
  }
};

export const expectEqual = (actual: ArrayLike<number>, expected: ArrayLike<number>, what: string): void =>
  expectNear(actual, expected, 0, what);

/** Returns the mean of the ranks' gradients, in f64. */
export const meanOf = (gradients: readonly ArrayLike<number>[]): number[] =>
  Array.from(gradients[0]!, (_, i) => gradients.reduce((sum, own) => sum + own[i]!, 0) / gradients.length);

export const squares = (values: ArrayLike<number>): number => Array.from(values).reduce((sum, v) => sum + v * v, 0);

/** Throws if two arrays differ in their bit patterns, so that the sign of zero matters. */
export const expectSameBits = (actual: ArrayLike<number>, expected: ArrayLike<number>, what: string): void => {
  const bits = (values: ArrayLike<number>): number[] => [...new Uint32Array(Float32Array.from(values).buffer)];
  expectEqual(bits(actual), bits(expected), `${what}, as bits`);
};
