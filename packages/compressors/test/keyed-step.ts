import fc from "fast-check";
import { type Aggregator, type Bucket, bucketOf } from "../src/index.ts";
import { stepperOf } from "./stepper.ts";

/** Result of one rank: the mean, and the part of the rank's gradient that the mean includes. */
export interface RankStep {
  readonly mean: number[];
  readonly sent: number[];
}

/** Runs the first step of an aggregator, with one gradient per rank and a random key from this seed. */
export const stepOnce = (
  aggregator: Aggregator,
  gradients: readonly (readonly number[])[],
  {
    seed = 0,
    bucket = bucketOf([{ path: "flat", shape: [gradients[0]!.length] }]),
  }: { readonly seed?: number; readonly bucket?: Bucket } = {},
): RankStep[] => {
  const stepper = stepperOf(aggregator, bucket, gradients.length, { keyed: true });
  const { mean, sent } = stepper.step(gradients, stepper.init(), seed);
  return mean.map((values, rank) => ({ mean: [...values], sent: [...sent[rank]!] }));
};

// Replaces subnormal numbers by 0: a quantization step of a subnormal number is below the smallest f32.
const withoutSubnormal = (v: number): number => (Math.abs(v) < 1e-30 ? 0 : v);

/**
 * Generates f32 gradients of 1 to `most` ranks, all of the same length. Values repeat often, so that ties are common.
 */
export const worldGradients = (most = 5, longest = 80): fc.Arbitrary<number[][]> => {
  const value = fc.oneof(
    fc.constantFrom(0, -0, 1, -1, 2),
    fc.float({ noNaN: true, min: -100, max: 100 }).map(withoutSubnormal),
  );
  return fc
    .tuple(fc.integer({ min: 1, max: most }), fc.integer({ min: 0, max: longest }))
    .chain(([numRanks, n]) =>
      fc.array(fc.array(value, { minLength: n, maxLength: n }), { minLength: numRanks, maxLength: numRanks }),
    );
};

export const squares = (values: readonly number[]): number => values.reduce((sum, v) => sum + v * v, 0);
