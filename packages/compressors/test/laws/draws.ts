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
  name: "the same key gives the same bits in a new trace",
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
          leaves.forEach(({ data }, leaf) =>
            expectEqual(data, b!.state[rank]![leaf]!.data, `state ${leaf} of rank ${rank}`),
          ),
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
    const gradients = [1, 2].map((rank) =>
      Array.from({ length: buckets.mixed.shape[0]! }, (_, i) => Math.sin(rank + 1.7 * i)),
    );
    const sent = [1, 2, 3].map((seed) => String(world!.step(gradients, world!.init(), seed).sent[0]));
    if (new Set(sent).size < 3) throw new Error("three keys gave less than three draws");
  },
};

/**
 * Tolerance for the average over correct draws, in standard errors. Correct draws exceed it in less than one of a
 * million elements.
 */
const maxErrors = 5.5;

/**
 * Minimum expected count of an outcome over all draws: an outcome with expected count 14 is never drawn with
 * probability e⁻¹⁴ < 10⁻⁶. Rarer outcomes may never be drawn: an entry close to a quantization level is then rounded to
 * this level in all draws, so that the sample variance does not bound the error of the average.
 */
const maxUnseen = 14;

const unbiased: Law = {
  name: "sends the gradient on average if declared unbiased",
  appliesTo: ({ aggregator }) => !aggregator.biased,
  check: (row) => {
    const numDraws = row.randomised ? 400 : 1;
    const worlds = worldsOf(row, cycleOf(row));
    holds(
      drawn({ among: [buckets.vector, buckets.mixed], ranks: [2], gradient: smoothGradient }),
      ({ bucket, numRanks, gradients, seed }) => {
        const [world] = worlds(bucket, numRanks);
        const state = world!.init();
        const steps = Array.from({ length: numDraws }, (_, draw) => world!.step(gradients, state, seed, draw));
        const check = (
          of: (step: (typeof steps)[number]) => Float64Array,
          expected: readonly number[],
          what: string,
        ): void => {
          const values = steps.map(of);
          const spread = Math.max(
            ...expected.map(
              (_, i) => Math.max(...values.map((own) => own[i]!)) - Math.min(...values.map((own) => own[i]!)),
            ),
          );
          expected.forEach((value, i) => {
            const average = values.reduce((sum, own) => sum + own[i]!, 0) / numDraws;
            const variance = values.reduce((sum, own) => sum + (own[i]! - average) ** 2, 0) / numDraws;
            const tolerance =
              maxErrors * Math.sqrt(variance / numDraws) +
              (maxUnseen / numDraws) * spread +
              Math.max(row.conservation, 2 ** -22) * greatest(...gradients);
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
