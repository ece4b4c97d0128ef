import { NdArray, scaleByAdam, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { orthogonaliseUpdates, scaleBySoap, shampoo, soap, type SoapState } from "../src/index.ts";
import { eigen, matrixOf, product, transposed } from "./dense.ts";
import recorded from "./fixtures/optimizers.json" with { type: "json" };
import { type Arrays, expectNear, walked } from "./walk.ts";

const squares = recorded.squares.map((values) => ({ w: NdArray.from(values, [4, 4]) }));
const matrices = recorded.gradients.map((values) => ({ w: NdArray.from(values, [5, 3]) }));

describe("steps computed with NumPy", () => {
  test("soap: bases from eigenvectors after the first update, from power iteration after the others", () => {
    const [updates] = walked(scaleBySoap({ beta2: 0.9 }), squares[0]!, squares, { first: (step) => step === 0 });
    updates!.forEach(({ w }, step) => expectNear(w!, recorded.soap[step]!, 2e-5));
  });

  test("shampoo", () => {
    const [updates] = walked(shampoo({ ridge: 1e-3 }), matrices[0]!, matrices);
    updates!.forEach(({ w }, step) => expectNear(w!, recorded.shampoo[step]!, 2e-4));
  });

  test("muon", () => {
    let velocity = recorded.gradients[0]!.map(() => 0);
    for (const [step, expected] of recorded.muon.entries()) {
      const gradient = recorded.gradients[step]!;
      velocity = velocity.map((value, i) => 0.95 * value + gradient[i]!);
      const ahead = velocity.map((value, i) => gradient[i]! + 0.95 * value);
      const [updates] = walked(orthogonaliseUpdates(), matrices[0]!, [{ w: NdArray.from(ahead, [5, 3]) }]);
      expectNear(updates![0]!["w"]!, expected, 1e-5);
    }
  });
});

const params: Arrays = {
  bias: normalArray([3], 2),
  kernel: normalArray([2, 2, 3, 4], 3),
  tall: normalArray([9, 3], 4),
};
const gradients = [5, 6, 7, 8, 9].map(
  (seed): Arrays =>
    Object.fromEntries(Object.entries(params).map(([path, { shape }], i) => [path, normalArray(shape, 10 * seed + i)])),
);
const begins = { first: (step: number) => step === 0 };

/** Returns the bases after all gradients, computed on one rank independently of the updates. */
const lastBases = (): Record<string, number[]> => {
  const watched = scaleBySoap();
  const [results] = walked(
    {
      init: watched.init,
      update: (own, state, context) => {
        const [updates, next] = watched.update(own, state, context);
        return [{ ...(updates as object), ...flatBases(next) } as never, next];
      },
    },
    params,
    gradients,
    begins,
  );
  return results!.at(-1)!;
};

const flatBases = ({ bases }: SoapState): Record<string, Tensor> =>
  Object.fromEntries(
    (["left", "right"] as const).flatMap((side) =>
      Object.values(bases[side]).map((basis, i) => [`${side}-${i}`, basis] as const),
    ),
  );

describe("soap", () => {
  test("keeps bases orthonormal, also for sides with low-rank second moments", () => {
    const bases = Object.entries(lastBases()).filter(([name]) => /^(left|right)/.test(name));
    expect(bases.map(([name, { length }]) => [name, Math.sqrt(length)])).toEqual([
      ["left-0", 12],
      ["left-1", 9],
      ["right-0", 4],
      ["right-1", 3],
    ]);
    for (const [, values] of bases) {
      const basis = matrixOf(values, Math.sqrt(values.length));
      product(transposed(basis), basis).forEach((row, i) =>
        row.forEach((value, j) => expect(value).toBeCloseTo(i === j ? 1 : 0, 5)),
      );
    }
  });

  test("a constant gradient is diagonal in its bases from the second step on", () => {
    const matrix = { w: normalArray([3, 3], 4) };
    const [first, second] = walked(scaleBySoap(), matrix, [matrix, matrix, matrix], begins)[0]!.slice(1);
    // Adam's direction for a constant diagonal is the identity: U Vᵀ with the singular vectors of the gradient.
    const g = matrixOf(matrix.w.toNumbers(), 3);
    const { values, vectors } = eigen(product(transposed(g), g));
    const inverseRoots = values.map((value, i) => values.map((_, j) => (i === j ? 1 / Math.sqrt(value) : 0)));
    const polar = product(g, vectors, inverseRoots, transposed(vectors)).flat();
    for (const { w } of [first!, second!]) {
      const inBasis = product(matrixOf(w!, 3), transposed(matrixOf(polar, 3)));
      // Off-diagonal squares only decay after the last refresh, so the identity is approximate.
      expect(inBasis.reduce((sum, row, i) => sum + row[i]!, 0) / 3).toBeGreaterThan(0.9);
    }
  });

  test("is Adam for vectors, and if no side has a basis", () => {
    const [rotated] = walked(scaleBySoap({ largestSide: 1 }), params, gradients, begins);
    const [adam] = walked(scaleByAdam({ beta1: 0.95, beta2: 0.95 }), params, gradients);
    // The squares of the first step are recomputed after it, and may differ in the last digit.
    rotated!.forEach((each, step) => Object.entries(each).forEach(([path, w]) => expectNear(w, adam![step]![path]!)));
    const [whole] = walked(scaleBySoap(), params, gradients, begins);
    whole!.forEach(({ bias }, step) => expect(bias).toEqual(rotated![step]!["bias"]));
    expect(whole![2]!["tall"]).not.toEqual(rotated![2]!["tall"]);
  });

  test("keeps bases between refreshes, and updates moments", () => {
    const rarely = { ...begins, refresh: (step: number) => step % 3 === 0 };
    const [often, seldom] = [
      walked(scaleBySoap(), params, gradients, begins)[0]!,
      walked(scaleBySoap(), params, gradients, rarely)[0]!,
    ];
    expect(often.slice(0, 2)).toEqual(seldom.slice(0, 2));
    expect(often[3]).not.toEqual(seldom[3]);
  });

  test.each([2, 3, 4])("distributed over %d ranks gives the same result on each", (numRanks) => {
    const [alone] = walked(scaleBySoap(), params, gradients, begins);
    for (const rank of walked(scaleBySoap({ axis: "data" }), params, gradients, { ...begins, numRanks }))
      expect(rank).toEqual(alone);
  });

  test("decays only matrices, decoupled from the gradient", () => {
    const zeros = Object.fromEntries(
      Object.entries(params).map(([path, { dtype, shape }]) => [path, NdArray.zeros(dtype, shape)]),
    );
    const [[update]] = walked(soap({ learningRate: 0.1, weightDecay: 0.5 }), params, [zeros], begins) as [
      [Record<string, number[]>],
    ];
    expect(update["bias"]!.every((value) => value === 0)).toBe(true);
    expectNear(
      update["tall"]!,
      params["tall"]!.toNumbers().map((value) => -0.05 * value),
    );
  });

  test("rejects options out of range", () => {
    expect(() => scaleBySoap({ largestSide: 0 })).toThrow(/largestSide is 0; use a whole number/);
    expect(() => scaleBySoap({ beta2: 1 })).toThrow(/1.*below 1/);
  });
});
