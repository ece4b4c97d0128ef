import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rankClasses, trainBoostedTrees } from "./gradient-boosted-trees.ts";

/** Numbers in [0, 1) that are the same every time. */
const numbers = (seed: number): (() => number) => {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
};

const points = (count: number, seed: number): number[][] => {
  const next = numbers(seed);
  return Array.from({ length: count }, () => [next(), next(), next()]);
};

const share = (features: readonly number[][], labels: readonly number[], trained: ReturnType<typeof trainBoostedTrees>): number =>
  features.filter((x, i) => rankClasses(trained, x)[0] === labels[i]).length / features.length;

describe("boosted trees", () => {
  test("find a threshold between the samples, on the right feature", () => {
    const features = points(200, 1);
    const labels = features.map(([, y]) => Number(y! >= 0.37));
    const trained = trainBoostedTrees(features, labels, 2, { rounds: 1, depth: 1 });
    const tree = trained.rounds[0]![0]!;
    if (typeof tree === "number") throw new Error("the tree is a single leaf");
    const [below, above] = [features.map((x) => x[1]!).filter((y) => y < 0.37), features.map((x) => x[1]!).filter((y) => y >= 0.37)];
    expect(tree.feature).toBe(1);
    expect(tree.threshold).toBeGreaterThan(Math.max(...below));
    expect(tree.threshold).toBeLessThanOrEqual(Math.min(...above));
  });

  test("the leaves of one split are −G/(H+1)", () => {
    // 8 below, 12 above, pure: g = ±1/2 and h = 1/4 each.
    const features = Array.from({ length: 20 }, (_, i) => [i]);
    const labels = features.map(([x]) => Number(x! >= 8));
    const { rounds } = trainBoostedTrees(features, labels, 2, { rounds: 1, depth: 3, eta: 0.5 });
    expect(rounds[0]![0]).toEqual({
      feature: 0,
      threshold: 7.5,
      below: (0.5 * -8 * 0.5) / (8 / 4 + 1),
      above: (0.5 * 12 * 0.5) / (12 / 4 + 1),
    });
  });

  test("no child has less than the least sum of second derivatives", () => {
    // A split that separates the odd one out would leave h = 1/4 on its side.
    const features = Array.from({ length: 20 }, (_, i) => [i]);
    const labels = features.map(([x]) => Number(x === 19));
    const count = (tree: unknown, rows: readonly number[][]): void => {
      if (typeof tree === "number") return expect(rows.length / 4).toBeGreaterThanOrEqual(1);
      const { feature, threshold, below, above } = tree as { feature: number; threshold: number; below: unknown; above: unknown };
      count(
        below,
        rows.filter((x) => x[feature]! < threshold),
      );
      count(
        above,
        rows.filter((x) => x[feature]! >= threshold),
      );
    };
    count(trainBoostedTrees(features, labels, 2, { rounds: 1 }).rounds[0]![0], features);
  });

  test("learn an exclusive or, which no single split can", () => {
    const features = points(400, 2);
    const labels = features.map(([x, y]) => Number(x! < 0.5 !== y! < 0.5));
    const stump = trainBoostedTrees(features, labels, 2, { rounds: 1, depth: 1 });
    expect(share(features, labels, stump)).toBeLessThan(0.7);
    const trained = trainBoostedTrees(features, labels, 2);
    expect(share(features, labels, trained)).toBe(1);
    const unseen = points(400, 3);
    expect(
      share(
        unseen,
        unseen.map(([x, y]) => Number(x! < 0.5 !== y! < 0.5)),
        trained,
      ),
    ).toBeGreaterThan(0.9);
  });

  test("learn four classes of quadrants", () => {
    const features = points(400, 4);
    const label = ([x, y]: readonly number[]): number => 2 * Number(x! < 0.4) + Number(y! < 0.7);
    const trained = trainBoostedTrees(features, features.map(label), 4);
    const unseen = points(400, 5);
    expect(share(unseen, unseen.map(label), trained)).toBeGreaterThan(0.93);
  });

  test("training twice gives the same trees, and every class is ranked once", () => {
    const features = points(120, 6);
    const labels = features.map(([x, y, z]) => Math.floor(3 * ((x! + y! * z!) / 2)));
    const trained = trainBoostedTrees(features, labels, 3);
    expect(trainBoostedTrees(features, labels, 3)).toEqual(trained);
    expect(JSON.parse(JSON.stringify(trained))).toEqual(trained);
    fc.assert(
      fc.property(fc.tuple(fc.double(), fc.double(), fc.double()), (x) => {
        expect([...rankClasses(trained, x)].sort()).toEqual([0, 1, 2]);
      }),
    );
  });

  test("one class needs no tree to be chosen", () => {
    expect(rankClasses(trainBoostedTrees([[1], [2]], [0, 0], 1), [3])).toEqual([0]);
  });

  test("refuse samples of different lengths", () => {
    expect(() => trainBoostedTrees([[1], [2, 3]], [0, 1], 2)).toThrow(/one length/);
    expect(() => trainBoostedTrees([], [], 2)).toThrow(/0 samples/);
  });
});
