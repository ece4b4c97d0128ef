import type { ReferenceArray } from "@skein/tensor-core/backend";
import { type Aggregator, bucketOf, withErrorFeedback } from "../../src/index.ts";
import type { Stepped, Stepper } from "../stepper.ts";
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
  meanOf,
  smallestNormal,
  squares,
  worldsOf,
} from "./law.ts";

const numSteps = 3;

/**
 * Returns (1/P) · Σ sent over the ranks, in f32, with two roundings: rounded after each rank, and rounded only at the
 * end. An all-reduce may compute either result.
 */
const meansOfSent = (sent: readonly Float64Array[]): readonly number[][] => {
  const share = Math.fround(1 / sent.length);
  const scaled = (sum: readonly number[]): number[] => sum.map((value) => Math.fround(Math.fround(value) * share));
  const length = sent[0]!.length;
  const sums = [Math.fround, (v: number) => v].map((rounded) =>
    Array.from({ length }, (_, i) => sent.reduce((sum, own) => rounded(sum + own[i]!), 0)),
  );
  return sums.map(scaled);
};

const checkConserves = ({ mean, sent }: Stepped, conservation: number, scale: number): void => {
  const candidates = meansOfSent(sent);
  if (conservation === 0) {
    mean[0]!.forEach((value, i) => {
      if (!candidates.some((candidate) => candidate[i] === value))
        throw new Error(
          `element ${i} of the mean is ${value}, but the mean of what was sent is ${candidates.map((own) => own[i]).join(" or ")}`,
        );
    });
  } else {
    const total = mean[0]!.map((value) => value * sent.length);
    const sums = Array.from(total, (_, i) => sent.reduce((sum, own) => sum + own[i]!, 0));
    expectNear(sums, total, conservation * scale + 8 * smallestNormal, "Σ sent compared with P · mean");
  }
};

/** Runs several steps of a row's aggregators. Gradients are rotated in each step, so that steps differ. */
const walk = (
  cycle: readonly Stepper[],
  gradients: readonly (readonly number[])[],
  seed: number,
  visit: (
    stepped: Stepped,
    own: readonly (readonly number[])[],
    before: readonly (readonly ReferenceArray[])[],
    step: number,
  ) => void,
): void => {
  let state = cycle[0]!.init();
  for (let step = 0; step < numSteps; step++) {
    const own = gradients.map((gradient) =>
      gradient.map((_, i) => Math.fround(gradient[(i + 5 * step) % gradient.length]! * (step % 2 === 0 ? 1 : -0.5))),
    );
    const stepped = cycle[step % cycle.length]!.step(own, state, seed, step);
    visit(stepped, own, state, step);
    state = stepped.state as ReferenceArray[][];
  }
};

const sums: Law = {
  name: "the sum of sent over all ranks is P times the mean in every step",
  appliesTo: always,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    holds(drawn(), ({ bucket, numRanks, gradients, seed }) => {
      let most = 0;
      walk(worlds(bucket, numRanks), gradients, seed, (stepped, own) => {
        most += greatest(...own);
        checkConserves(stepped, row.conservation, most);
      });
    });
  },
};

const sameBits: Law = {
  name: "all ranks have the same bits",
  appliesTo: always,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    holds(drawn({ ranks: [2, 3, 4, 6] }), ({ bucket, numRanks, gradients, seed }) =>
      walk(worlds(bucket, numRanks), gradients, seed, ({ mean }) => {
        for (const own of mean) expectSameBits(own, mean[0]!, "the mean of another rank");
      }),
    );
  },
};

const residuals: Law = {
  name: "the residual plus sent equals the accumulated gradient",
  appliesTo: (row) => worldsOf(row, cycleOf(row))(buckets.scalar, 1)[0]!.paths.includes("residual"),
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    holds(drawn(), ({ bucket, numRanks, gradients, seed }) => {
      const cycle = worlds(bucket, numRanks);
      const at = cycle[0]!.paths.indexOf("residual");
      let most = 0;
      walk(cycle, gradients, seed, ({ sent, state }, own, before) => {
        most += greatest(...own);
        own.forEach((gradient, rank) => {
          const accumulated = gradient.map((value, i) => Math.fround(value + before[rank]![at]!.data[i]!));
          const total = sent[rank]!.map((value, i) => Math.fround(value + state[rank]![at]!.data[i]!));
          expectNear(
            total,
            accumulated,
            row.conservation * most + (row.conservation > 0 ? 8 * smallestNormal : 0),
            `residual + sent of rank ${rank}`,
          );
        });
      });
    });
  },
};

const telescopes: Law = {
  name: "with error feedback, the means of all steps and the residuals add up to the mean gradients",
  appliesTo: always,
  check: (row) => {
    // Also wraps rows that already keep a residual, because no value may be lost in this case either.
    const worlds = worldsOf(
      row,
      cycleOf(row, (aggregator) => withErrorFeedback(aggregator as Aggregator)),
    );
    holds(drawn(), ({ bucket, numRanks, gradients, seed }) => {
      const cycle = worlds(bucket, numRanks);
      const residual = cycle[0]!.paths.indexOf("residual");
      const got = new Float64Array(gradients[0]!.length);
      const due = new Float64Array(gradients[0]!.length);
      let most = 0;
      walk(cycle, gradients, seed, ({ mean, state }, own) => {
        most += greatest(...own, mean[0]!); // a vote may be larger than its inputs
        mean[0]!.forEach((value, i) => (got[i]! += value));
        meanOf(own).forEach((value, i) => (due[i]! += value));
        const kept = meanOf(state.map((leaves) => leaves[residual]!.data));
        const margin = Math.max(row.conservation, numSteps * 2 ** -22) * most + 8 * smallestNormal;
        expectNear(
          got.map((value, i) => value + kept[i]!),
          due,
          margin,
          "Σ mean + residual",
        );
      });
    });
  },
};

/** Compares, for each rank, the squared error ‖u − sent‖², averaged over draws, with its bound (1 − δ)‖u‖². */
const checkContracts = (
  world: Stepper,
  gradients: readonly ArrayLike<number>[],
  contraction: number,
  seed: number,
  numDraws: number,
): void => {
  const state = world.init();
  const draws = Array.from({ length: numDraws }, (_, draw) => world.step(gradients, state, seed + draw).sent);
  gradients.forEach((u, rank) => {
    const lost = draws.map((sent) => squares(Array.from(u, (value, i) => value - sent[rank]![i]!)));
    const average = lost.reduce((sum, one) => sum + one, 0) / numDraws;
    const deviation = Math.sqrt(lost.reduce((sum, one) => sum + (one - average) ** 2, 0) / numDraws);
    const most = (1 - contraction) * squares(u) + (5 * deviation) / Math.sqrt(numDraws);
    if (!(average <= most * (1 + 1e-6) + 1e-12 * squares(u) + u.length * (8 * smallestNormal) ** 2))
      throw new Error(`‖u − C(u)‖² of rank ${rank} of ${gradients.length} is ${average}, above ${most}`);
  });
};

const contraction: Law = {
  name: "satisfies the declared contraction on every rank, for any number of ranks",
  appliesTo: ({ contraction: declared }) => declared !== undefined,
  check: (row) => {
    const numDraws = row.randomised ? 200 : 1;
    const { aggregator } = row;
    for (const lengths of [[1], [33], [5, 100, 1000], [samplingBegins]])
      for (const numRanks of [1, 2, 3, 4]) {
        const bucket = bucketOf(lengths.map((length, i) => ({ path: `t${i}`, shape: [length] })));
        const declared = aggregator.contraction?.(bucket, numRanks);
        const expected = row.contraction!(bucket, numRanks);
        if (
          declared === undefined
            ? aggregator.contraction !== undefined && expected !== undefined
            : !(Math.abs(declared - Math.max(0, expected ?? NaN)) <= 1e-3)
        )
          throw new Error(
            `δ of ${bucket.shape[0]} entries on ${numRanks} ranks is declared to be ${declared}, but the law table says ${expected}`,
          );
      }
    const worlds = worldsOf(row, cycleOf(row));
    holds(
      drawn({ ranks: row.randomised ? [1, 3] : [1, 2, 3, 4] }),
      ({ bucket, numRanks, gradients, seed }) => {
        const declared = row.contraction!(bucket, numRanks);
        if (declared !== undefined) checkContracts(worlds(bucket, numRanks)[0]!, gradients, declared, seed, numDraws);
      },
      row.randomised ? 8 : 40,
    );
  },
};

/**
 * Smallest gradient length for which some aggregators read only a sample, plus one, so that every stride begins at
 * another index.
 */
const samplingBegins = 2 ** 18 + 1;

/**
 * Returns a gradient for which a sample of every 13th entry is misleading: many large entries at indices that are not
 * sampled, and the largest entry after more entries than the capacity.
 */
const unseen = (length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => (i === length - 2 ? 1e4 : i % 13 === 5 ? 1 : 1e-3 * (1 + i / length)));

const contractionOfMany: Law = {
  name: "satisfies the declared contraction for lengths that permit sampling",
  // Wrappers keep what the inner aggregator sends.
  appliesTo: (row) =>
    row.contraction !== undefined &&
    !row.randomised &&
    worldsOf(row, cycleOf(row))(buckets.scalar, 1)[0]!.paths.length === 0,
  check: (row) => {
    const bucket = bucketOf([{ path: "large", shape: [samplingBegins] }]);
    const declared = row.contraction!(bucket, 1);
    if (declared !== undefined)
      checkContracts(worldsOf(row, cycleOf(row))(bucket, 1)[0]!, [unseen(samplingBegins)], declared, 0, 1);
  },
};

export const conservationLaws: readonly Law[] = [sums, sameBits, residuals, telescopes, contraction, contractionOfMany];
