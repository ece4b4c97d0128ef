import { ArgumentError } from "@skein/tensor-core";

/** A leaf adds to a score; a split sends `x[feature] < threshold` below, the rest above. */
export type Tree = number | { readonly feature: number; readonly threshold: number; readonly below: Tree; readonly above: Tree };

/** Scores of classes are sums over rounds: one tree a round for two classes (the score of class 1), else one per class. */
export interface BoostedTrees {
  readonly classes: number;
  readonly rounds: readonly (readonly Tree[])[];
}

export interface BoostingOptions {
  /** Default: 8, where the papers' selector stops. */
  readonly rounds?: number;
  /** Default: 8. */
  readonly depth?: number;
  /** Step of each tree. Default: 1. */
  readonly eta?: number;
  /** Least sum of second derivatives in a child. Default: 1. */
  readonly minHessian?: number;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

const softmax = (scores: readonly number[]): number[] => {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
};

const treeValue = (tree: Tree, x: readonly number[]): number => {
  let node = tree;
  while (typeof node !== "number") node = x[node.feature]! < node.threshold ? node.below : node.above;
  return node;
};

/** Penalty on squared leaf values: a leaf is −G/(H+1). */
const ridge = 1;

/** Gains below it are rounding. */
const leastGain = 1e-9;

interface Slopes {
  readonly gradient: Float64Array;
  readonly hessian: Float64Array;
}

const score = (g: number, h: number): number => (g * g) / (h + ridge);

/** Exact greedy search: every threshold between two values of every feature; the first of equals wins, so trees are reproducible. */
const growTree = (
  features: readonly (readonly number[])[],
  rows: readonly number[],
  { gradient, hessian }: Slopes,
  depth: number,
  eta: number,
  minHessian: number,
): Tree => {
  let [G, H] = [0, 0];
  for (const row of rows) {
    G += gradient[row]!;
    H += hessian[row]!;
  }
  const leaf = (-G / (H + ridge)) * eta + 0; // JSON has no −0
  if (depth === 0 || H < 2 * minHessian) return leaf;
  let best = { gain: leastGain, feature: -1, threshold: 0 };
  const numFeatures = features[0]!.length;
  for (let feature = 0; feature < numFeatures; feature++) {
    const sorted = [...rows].sort((p, q) => features[p]![feature]! - features[q]![feature]! || p - q);
    let [g, h] = [0, 0];
    for (let i = 0; i + 1 < sorted.length; i++) {
      g += gradient[sorted[i]!]!;
      h += hessian[sorted[i]!]!;
      const [here, next] = [features[sorted[i]!]![feature]!, features[sorted[i + 1]!]![feature]!];
      if (here === next || h < minHessian || H - h < minHessian) continue;
      const gain = score(g, h) + score(G - g, H - h) - score(G, H);
      if (gain > best.gain) best = { gain, feature, threshold: (here + next) / 2 };
    }
  }
  if (best.feature < 0) return leaf;
  const { feature, threshold } = best;
  const side = (isBelow: boolean): Tree => {
    const inside = rows.filter((row) => features[row]![feature]! < threshold === isBelow);
    return growTree(features, inside, { gradient, hessian }, depth - 1, eta, minHessian);
  };
  return { feature, threshold, below: side(true), above: side(false) };
};

/**
 * Newton boosting of small trees (Chen & Guestrin 2016, "XGBoost"): each round fits a tree to the first and second derivatives of the logistic
 * loss (g = p − y, h = p·(1 − p)), or for more than two classes of the softmax loss, one tree per class. Deterministic.
 *
 * @param features one row of numbers per sample.
 * @param labels class of each sample, 0 … classes − 1.
 * @throws ArgumentError when the samples are none or not of one length.
 */
export const trainBoostedTrees = (
  features: readonly (readonly number[])[],
  labels: readonly number[],
  classes: number,
  { rounds = 8, depth = 8, eta = 1, minHessian = 1 }: BoostingOptions = {},
): BoostedTrees => {
  if (features.length === 0 || features.length !== labels.length || features.some((row) => row.length !== features[0]!.length))
    throw new ArgumentError(
      `boosting needs samples of one length with one label each, got ${features.length} samples and ${labels.length} labels`,
    );
  const outputs = classes <= 2 ? 1 : classes;
  const all = features.map((_, row) => row);
  const scores = features.map(() => new Array<number>(outputs).fill(0));
  const grown: Tree[][] = [];
  for (let round = 0; round < rounds; round++) {
    const slopes = Array.from(
      { length: outputs },
      (): Slopes => ({
        gradient: new Float64Array(all.length),
        hessian: new Float64Array(all.length),
      }),
    );
    for (const row of all) {
      const chances = classes <= 2 ? [sigmoid(scores[row]![0]!)] : softmax(scores[row]!);
      chances.forEach((p, output) => {
        const truth = classes <= 2 ? labels[row]! : Number(labels[row] === output);
        slopes[output]!.gradient[row] = p - truth;
        slopes[output]!.hessian[row] = p * (1 - p);
      });
    }
    const trees = slopes.map((slope) => growTree(features, all, slope, depth, eta, minHessian));
    for (const row of all) trees.forEach((tree, output) => (scores[row]![output]! += treeValue(tree, features[row]!)));
    grown.push(trees);
  }
  return { classes, rounds: grown };
};

/** Classes from the likeliest to the least likely; of equals the smaller number first. */
export const rankClasses = ({ classes, rounds }: BoostedTrees, x: readonly number[]): readonly number[] => {
  const sums = rounds.reduce<number[]>((sum, trees) => trees.map((tree, output) => (sum[output] ?? 0) + treeValue(tree, x)), []);
  const scores = classes <= 2 ? [0, sums[0] ?? 0].slice(0, classes) : sums;
  return scores.map((_, label) => label).sort((p, q) => scores[q]! - scores[p]! || p - q);
};
