import { elementCount } from "@skein/tensor-core";
import { lengthOf } from "../../src/index.ts";
import type { Stepped } from "../stepper.ts";
import {
  cycleOf,
  drawn,
  buckets,
  expectEqual,
  expectNear,
  expectSameBits,
  greatest,
  holds,
  type Law,
  smoothGradient,
  worldsOf,
} from "./law.ts";

const { scalar, pair, vector, matrix, mixed } = buckets;

const permutation: Law = {
  name: "permuted gradients give the permuted mean",
  appliesTo: (row) => row.permutation,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    holds(
      drawn({ among: [pair, vector], ranks: [1, 3], gradient: smoothGradient }),
      ({ bucket, numRanks, gradients, seed }) => {
        const [world] = worlds(bucket, numRanks);
        const n = lengthOf(bucket);
        const moved = (values: ArrayLike<number>): number[] =>
          Array.from({ length: n }, (_, i) => values[(5 * i + 3) % n]!);
        const straight = world!.step(gradients, world!.init(), seed);
        const permuted = world!.step(gradients.map(moved), world!.init(), seed);
        // Sums in another order round differently.
        const tolerance = 2 ** -20 * greatest(...gradients);
        expectNear(permuted.mean[0]!, moved(straight.mean[0]!), tolerance, "mean");
        straight.sent.forEach((sent, rank) =>
          expectNear(permuted.sent[rank]!, moved(sent), tolerance, `sent by rank ${rank}`),
        );
      },
    );
  },
};

/** Returns the law that C(cu) = cC(u) holds bit by bit, for each factor c in `factors`. */
const commutesWith = (name: string, appliesTo: Law["appliesTo"], factors: readonly number[]): Law => ({
  name,
  appliesTo,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    const gradient = smoothGradient;
    holds(
      drawn({ among: [scalar, pair, vector, matrix, mixed], ranks: [1, 4], gradient }),
      ({ bucket, numRanks, gradients, seed }) => {
        const [world] = worlds(bucket, numRanks);
        const straight = world!.step(gradients, world!.init(), seed);
        for (const factor of factors) {
          const times = (values: ArrayLike<number>): number[] => Array.from(values, (value) => value * factor);
          const scaled = world!.step(gradients.map(times), world!.init(), seed);
          expectEqual(scaled.mean[0]!, times(straight.mean[0]!), `mean of gradients times ${factor}`);
          straight.sent.forEach((sent, rank) =>
            expectEqual(scaled.sent[rank]!, times(sent), `sent by rank ${rank} times ${factor}`),
          );
        }
      },
    );
  },
});

/** Law: the sent part of a tensor does not depend on the contents of other tensors in the same bucket. */
const ownTensor: Law = {
  name: "the sent part of a tensor does not depend on its bucket, if declared",
  appliesTo: ({ aggregator }) => aggregator.scope === "tensor",
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    holds(drawn({ among: [mixed], ranks: [1, 3] }), ({ bucket, numRanks, gradients, seed }) => {
      const cycle = worlds(bucket, numRanks);
      const walk = (own: readonly (readonly number[])[]): Stepped[] => {
        let state = cycle[0]!.init();
        return cycle.map((world, step) => {
          const stepped = world.step(own, state, seed, step);
          state = stepped.state as typeof state;
          return stepped;
        });
      };
      const usual = walk(gradients);
      let begin = 0;
      for (const { path, shape } of bucket.tensors) {
        const end = begin + elementCount(shape);
        const own = (values: ArrayLike<number>): number[] => Array.from(values).slice(begin, end);
        const others = walk(
          gradients.map((gradient, rank) =>
            gradient.map((value, i) => (i >= begin && i < end ? value : Math.fround(7 * value + rank - 500))),
          ),
        );
        others.forEach(({ mean, sent }, step) => {
          expectSameBits(own(mean[0]!), own(usual[step]!.mean[0]!), `mean of ${path} in step ${step}`);
          sent.forEach((ofRank, rank) =>
            expectSameBits(own(ofRank), own(usual[step]!.sent[rank]!), `sent of ${path} by rank ${rank}`),
          );
        });
        begin = end;
      }
    });
  },
};

export const symmetryLaws: readonly Law[] = [
  permutation,
  ownTensor,
  commutesWith("gradients times a power of two give as many times the mean", (row) => row.scale, [
    2,
    0.25,
    2 ** 20,
    2 ** -20,
  ]),
  commutesWith("negated gradients give the negated mean", (row) => row.odd, [-1]),
];
