import type fc from "fast-check";
import {
  buckets,
  cycleOf,
  drawn,
  expectEqual,
  expectNear,
  expectSameBits,
  greatest,
  holds,
  type Law,
  meanOf,
  smoothGradient,
  worldsOf,
  always,
} from "./law.ts";

const deterministic: Law = {
  name: "the same key gives the same bits, traced anew",
  appliesTo: always,
  check: (row) => {
    const [first, second] = [worldsOf(row, cycleOf(row)), worldsOf(row, cycleOf(row))];
    holds(
      drawn(),
      ({ bucket, numRanks, gradients, seed }) => {
        const [a, b] = [first, second].map((worlds) => {
          const [world] = worlds(bucket, numRanks);
          return world!.step(gradients, world!.init(), seed);
        });
        a!.mean.forEach((mean, rank) => expectSameBits(mean, b!.mean[rank]!, `mean of rank ${rank}`));
        a!.sent.forEach((sent, rank) => expectSameBits(sent, b!.sent[rank]!, `sent by rank ${rank}`));
        a!.state.forEach((leaves, rank) =>
          leaves.forEach(({ data }, leaf) => expectEqual(data, b!.state[rank]![leaf]!.data, `state ${leaf} of rank ${rank}`)),
        );
      },
      8,
    );
  },
};

const draws: Law = {
  name: "another key gives another draw",
  appliesTo: (row) => row.randomised,
  check: (row) => {
    const [world] = worldsOf(row, cycleOf(row))(buckets.mixed, 2);
    const gradients = [1, 2].map((rank) => Array.from({ length: buckets.mixed.shape[0]! }, (_, i) => Math.sin(rank + 1.7 * i)));
    const sent = [1, 2, 3].map((seed) => String(world!.step(gradients, world!.init(), seed).sent[0]));
    if (new Set(sent).size < 3) throw new Error("three keys gave less than three draws");
  },
};

/** Standard errors that the average of an honest draw may be off: less than once in a million elements. */
const mostErrors = 5.5;

/**
 * No entry is below a tenth of the greatest: the error of an average is told from its draws, and one that is sent so
 * rarely that no draw has it would seem to have none. (400 draws miss what is sent with probability 0.04 once in 10⁷,
 * with 0.005 in one case of seven.)
 */
const oftenSent = (length: number): fc.Arbitrary<number[]> =>
  smoothGradient(length).map((own) => own.map((value) => value + (Math.sign(value) * greatest(own)) / 10));

const unbiased: Law = {
  name: "sends the gradient on average, where it says that it is unbiased",
  appliesTo: ({ aggregator }) => !aggregator.biased,
  check: (row) => {
    const numDraws = row.randomised ? 400 : 1;
    const worlds = worldsOf(row, cycleOf(row));
    holds(
      drawn({ among: [buckets.vector, buckets.mixed], ranks: [2], gradient: oftenSent }),
      ({ bucket, numRanks, gradients, seed }) => {
        const [world] = worlds(bucket, numRanks);
        const state = world!.init();
        const steps = Array.from({ length: numDraws }, (_, draw) => world!.step(gradients, state, seed, draw));
        const check = (of: (step: (typeof steps)[number]) => Float64Array, wanted: readonly number[], what: string): void => {
          const values = steps.map(of);
          wanted.forEach((value, i) => {
            const average = values.reduce((sum, own) => sum + own[i]!, 0) / numDraws;
            const variance = values.reduce((sum, own) => sum + (own[i]! - average) ** 2, 0) / numDraws;
            const tolerance = mostErrors * Math.sqrt(variance / numDraws) + Math.max(row.conservation, 2 ** -22) * greatest(...gradients);
            expectNear([average], [value], tolerance, `${what}, element ${i}`);
          });
        };
        check(({ mean }) => mean[0]!, meanOf(gradients), "average of the mean");
        check(({ sent }) => sent[1]!, gradients[1]!, "average of what rank 1 sent");
      },
      2,
    );
  },
};

export const drawLaws: readonly Law[] = [deterministic, draws, unbiased];
