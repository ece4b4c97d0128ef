import fc from "fast-check";
import type { ReferenceArray } from "@skein/tensor-core/backend";
import { identityCompressor, lengthOf } from "../../src/index.ts";
import {
  always,
  buckets,
  cycleOf,
  drawn,
  expectNear,
  expectSameBits,
  greatest,
  holds,
  type Law,
  smallestNormal,
  smoothGradient,
  worldsOf,
} from "./law.ts";

const everyBucket = Object.values(buckets);

/** Returns a law for a constant gradient over a few steps, for which the result is known. */
const constantLaw = (
  name: string,
  value: number,
  check: (mean: Float64Array, ofZero: readonly number[]) => void,
): Law => ({
  name,
  appliesTo: always,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    for (const bucket of everyBucket) {
      for (const numRanks of [1, 3]) {
        const cycle = worlds(bucket, numRanks);
        let state = cycle[0]!.init();
        for (let step = 0; step < 3; step++) {
          const gradient = new Array<number>(lengthOf(bucket)).fill(value);
          const stepped = cycle[step % cycle.length]!.step(
            Array.from({ length: numRanks }, () => gradient),
            state,
            3,
            step,
          );
          if (stepped.mean.some((mean) => mean.length !== gradient.length))
            throw new Error(`a mean of another length than ${gradient.length}`);
          for (const mean of stepped.mean) check(mean, row.ofZero ?? [0]);
          state = stepped.state as ReferenceArray[][];
        }
      }
    }
  },
});

const zeros = constantLaw("zeros stay zeros, at any length, and 0 elements are 0 elements", 0, (mean, ofZero) =>
  mean.forEach((value, i) => {
    if (!ofZero.includes(value)) throw new Error(`element ${i} of the mean of zeros is ${value}`);
  }),
);

const ties = constantLaw("gradients of equal elements have a finite mean", 1, (mean) => {
  mean.forEach((value, i) => {
    if (!Number.isFinite(value)) throw new Error(`element ${i} of the mean of ones is ${value}`);
  });
});

const poison: Law = {
  name: "a NaN or an infinity on one rank makes the mean non-finite on all ranks",
  appliesTo: always,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    const hit = fc.tuple(
      drawn({ ranks: [1, 2, 3, 4] }),
      fc.record({
        value: fc.constantFrom(NaN, Infinity, -Infinity),
        at: fc.nat(1e6),
        rank: fc.nat(1e6),
        warm: fc.nat(2),
      }),
    );
    holds(
      hit,
      ([{ bucket, numRanks, gradients, seed }, { value, at, rank, warm }]) => {
        const cycle = worlds(bucket, numRanks);
        let state = cycle[0]!.init();
        for (let step = 0; step < warm; step++)
          state = cycle[step % cycle.length]!.step(gradients, state, seed, step).state as ReferenceArray[][];
        const poisoned = gradients.map((own) => [...own]);
        const [victim, index] = [rank % numRanks, at % lengthOf(bucket)];
        poisoned[victim]![index] = value;
        const { mean } = cycle[warm % cycle.length]!.step(poisoned, state, seed, warm);
        mean.forEach((own, here) => {
          if (own.every(Number.isFinite))
            throw new Error(
              `rank ${victim} of ${numRanks} has ${value} in element ${index}, but the mean of rank ${here} is finite`,
            );
        });
      },
      40,
    );
  },
};

const extremes: Law = {
  name: "huge and tiny gradients are conserved, or stop the step on all ranks",
  appliesTo: always,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    const extreme = (length: number): fc.Arbitrary<number[]> =>
      fc
        .tuple(fc.constantFrom(1e30, 1e20, 1e-20, 1e-36), smoothGradient(length))
        .map(([size, own]) => own.map((value) => value * size));
    holds(drawn({ ranks: [1, 3, 4], gradient: extreme }), ({ bucket, numRanks, gradients, seed }) => {
      const [world] = worlds(bucket, numRanks);
      const { mean, sent } = world!.step(gradients, world!.init(), seed);
      for (const own of mean) expectSameBits(own.map(Number), mean[0]!, "the mean of another rank");
      if (!mean[0]!.every(Number.isFinite)) return;
      const total = sent[0]!.map((_, i) => sent.reduce((sum, own) => sum + own[i]!, 0));
      // Numbers below 2^-126 lose precision.
      const tolerance = Math.max(row.conservation, 2 ** -22) * greatest(...gradients) + numRanks * smallestNormal;
      expectNear(
        total,
        mean[0]!.map((value) => value * numRanks),
        tolerance,
        "Σ sent compared with P · mean",
      );
    });
  },
};

const dense: Law = {
  name: "set to send everything, it gives the dense mean",
  appliesTo: (row) => row.dense !== undefined,
  check: (row) => {
    const worlds = worldsOf(row, [row.dense!]);
    const expected = worldsOf(row, [identityCompressor()]);
    holds(drawn(), ({ bucket, numRanks, gradients, seed }) => {
      const [world] = worlds(bucket, numRanks);
      const [reference] = expected(bucket, numRanks);
      let state = world!.init();
      for (let step = 0; step < 2; step++) {
        const stepped = world!.step(gradients, state, seed, step);
        const [mean] = reference!.step(gradients, reference!.init()).mean;
        const relative = Math.max(row.denseTolerance ?? 0, numRanks > 2 ? numRanks * 2 ** -24 : 0);
        const tolerance = relative * greatest(...gradients) + (relative > 0 ? smallestNormal : 0);
        expectNear(stepped.mean[0]!, mean!, tolerance, `mean of step ${step}`);
        state = stepped.state as ReferenceArray[][];
      }
    });
  },
};

export const hardValueLaws: readonly Law[] = [zeros, ties, poison, extremes, dense];
