import type { ReferenceArray } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import { type Aggregator, bucketOf, lengthOf, withErrorFeedback } from "../../src/index.ts";
import { always, cycleOf, expectSameBits, type Law, squares, worldsOf } from "./law.ts";

const bucket = bucketOf([
  { path: "bias", shape: [4] },
  { path: "dense", shape: [6, 4] },
  { path: "shift", shape: [] },
]);
const n = lengthOf(bucket);
const distance = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Math.sqrt(squares(Array.from(a, (value, i) => value - b[i]!)));

/**
 * Returns the objectives of a test problem: rank r minimizes ½ Σ_j a_rj (w_j − c_rj)². At the minimum of the mean
 * objective, no rank's own gradient is zero.
 */
const quadratics = (numRanks: number) => {
  const curvatures = Array.from({ length: numRanks }, (_, rank) => uniformArray([n], 0.5, 1.5, 10 + rank).toNumbers());
  const centres = Array.from({ length: numRanks }, (_, rank) => normalArray([n], 20 + rank).toNumbers());
  const optimum = Array.from({ length: n }, (_, j) => {
    const weight = curvatures.reduce((sum, own) => sum + own[j]!, 0);
    return curvatures.reduce((sum, own, rank) => sum + own[j]! * centres[rank]![j]!, 0) / weight;
  });
  const gradient = (rank: number, w: Float64Array): number[] =>
    Array.from(w, (value, j) => curvatures[rank]![j]! * (value - centres[rank]![j]!));
  return { gradient, optimum };
};

const descent: Law = {
  name: "SGD reaches the optimum of dense SGD, with equal parameters on all ranks",
  appliesTo: always,
  check: (row) => {
    const hasResidual = worldsOf(row, cycleOf(row))(bucket, 1)[0]!.paths.some((path) => /(^|\.)residual$/.test(path));
    const {
      steps = 250,
      learningRate = 0.1,
      margin = 0.05,
      errorFeedback = row.aggregator.biased && !hasResidual,
    } = row.descent ?? {};
    const cycle = cycleOf(row, (own) => (errorFeedback ? withErrorFeedback(own as Aggregator) : own));
    const numRanks = row.axes === undefined ? 3 : 4;
    const worlds = worldsOf(row, cycle)(bucket, numRanks);
    const { gradient, optimum } = quadratics(numRanks);
    let state = worlds[0]!.init();
    const weights = Array.from({ length: numRanks }, () => new Float64Array(n));
    const start = distance(weights[0]!, optimum);
    for (let step = 0; step < steps; step++) {
      const gradients = weights.map((own, rank) => gradient(rank, own));
      const stepped = worlds[step % worlds.length]!.step(gradients, state, step, step);
      const rate = learningRate / (1 + step / 50);
      weights.forEach((own, rank) =>
        stepped.mean[rank]!.forEach((value, j) => (own[j] = Math.fround(own[j]! - rate * value))),
      );
      state = stepped.state as ReferenceArray[][];
    }
    weights.forEach((own, rank) => expectSameBits(own, weights[0]!, `parameters of rank ${rank}`));
    const left = distance(weights[0]!, optimum) / start;
    if (!(left <= margin))
      throw new Error(`${numRanks} ranks end at ${left} of the distance to the optimum, above ${margin}`);
  },
};

export const descentLaws: readonly Law[] = [descent];
