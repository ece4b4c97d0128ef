import { chain, NdArray, scaleByLearningRate, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { lamb, lars, muon, orthogonaliseUpdates, shampoo } from "../src/index.ts";
import { tensorNorms } from "../src/tensor-norms.ts";
import { eigen, gramOf, matrixOf, product, spectral, transposed } from "./dense.ts";
import { applyOnce } from "./steps.ts";
import { runRanks } from "./world.ts";
import { type Arrays, expectNear, walked } from "./walk.ts";

const params: Arrays = {
  head: normalArray([3, 2], 1),
  bias: normalArray([3], 2),
  kernel: normalArray([2, 2, 3, 4], 3),
  wide: normalArray([3, 7], 4),
};
const gradients = [5, 6, 7].map(
  (seed): Arrays =>
    Object.fromEntries(Object.entries(params).map(([path, { shape }], i) => [path, normalArray(shape, 10 * seed + i)])),
);

describe("muon", () => {
  const optimizer = (options = {}) =>
    muon({ learningRate: 1, isHidden: (path) => path !== "head", decay: 0.5, ...options });

  test("makes hidden matrices approximately orthonormal, for any size of the gradient", () => {
    const [small, large] = [1e-3, 1e3].map(
      (factor) =>
        walked(optimizer(), params, [
          Object.fromEntries(
            Object.entries(gradients[0]!).map(([path, array]) => [
              path,
              NdArray.from(
                array.toNumbers().map((value) => factor * value),
                array.shape,
              ),
            ]),
          ),
        ])[0]![0]!,
    );
    for (const [path, columns] of [
      ["kernel", 4],
      ["wide", 7],
    ] as const) {
      expectNear(small![path]!, large![path]!, 1e-4);
      const matrix = matrixOf(large![path]!, columns);
      const rows = matrix.length < columns ? matrix : transposed(matrix);
      const scale = Math.max(1, columns / matrix.length);
      const { values } = eigen(gramOf(rows).map((row) => row.map((value) => (value * rows[0]!.length) / scale)));
      for (const value of values) {
        expect(Math.sqrt(value)).toBeGreaterThan(0.68);
        expect(Math.sqrt(value)).toBeLessThan(1.14);
      }
    }
  });

  test("is momentum with Nesterov look-ahead, then the iteration, then √max(1, outputs / inputs)", () => {
    const [first, second] = gradients as [Arrays, Arrays, Arrays];
    const ahead = first["wide"]!.toNumbers().map((g, i) => {
      const now = second["wide"]!.toNumbers()[i]!;
      return now + 0.5 * (0.5 * g + now);
    });
    const { updates } = applyOnce(orthogonaliseUpdates(), { wide: NdArray.from(ahead, [3, 7]) });
    const walk = walked(optimizer(), params, [first, second])[0]!;
    expectNear(
      walk[1]!["wide"]!,
      updates["wide"]!.map((value) => -value),
    );
    expectNear(
      walked(optimizer({ nesterov: false, decay: 0 }), params, [second])[0]![0]!["wide"]!,
      applyOnce(orthogonaliseUpdates(), { wide: second["wide"]! }).updates["wide"]!.map((value) => -value),
    );
  });

  test("updates the head and vectors with Adam at its share of the learning rate", () => {
    const [{ head, bias }] = walked(optimizer(), params, gradients.slice(0, 1))[0] as [Record<string, number[]>];
    for (const [path, update] of [
      ["head", head],
      ["bias", bias],
    ] as const)
      expectNear(
        update!,
        gradients[0]![path]!.toNumbers().map((g) => -0.015 * Math.sign(g)),
        1e-5,
      );
  });

  test.each([2, 3, 4])("distributed over %d ranks gives the same result on each", (numRanks) => {
    const [alone] = walked(optimizer(), params, gradients);
    for (const rank of walked(optimizer({ axis: "data" }), params, gradients, { numRanks }))
      expect(rank).toEqual(alone);
  });

  test("rejects an invalid share of the learning rate", () => {
    expect(() => optimizer({ adamShare: 0 })).toThrow(/adamShare is 0/);
  });
});

describe("trust ratios", () => {
  const norm = (values: readonly number[]): number => Math.hypot(...values);

  test("lars: the formula in plain numbers, over three steps", () => {
    const walk = walked(
      lars({ learningRate: 0.3, decay: 0.8, weightDecay: 0.1, coefficient: 0.02 }),
      params,
      gradients,
    );
    const velocity: Record<string, number[]> = {};
    gradients.forEach((gradient, step) => {
      for (const [path, array] of Object.entries(params)) {
        const w = array.toNumbers();
        const isVector = array.shape.length < 2;
        const u = gradient[path]!.toNumbers().map((g, i) => (isVector ? g : g + 0.1 * w[i]!));
        const ratio = isVector ? 1 : (0.02 * norm(w)) / norm(u);
        velocity[path] = u.map((value, i) => 0.8 * (velocity[path]?.[i] ?? 0) + ratio * value);
        expectNear(
          walk[0]![step]![path]!,
          velocity[path]!.map((value) => -0.3 * value),
        );
      }
    });
  });

  test("lamb: Adam's first direction, decay, and a step in proportion to the tensor's size", () => {
    const [[update]] = walked(lamb({ learningRate: 0.3, weightDecay: 0.1 }), params, gradients.slice(0, 1)) as [
      [Record<string, number[]>],
    ];
    for (const [path, array] of Object.entries(params)) {
      const w = array.toNumbers();
      const isVector = array.shape.length < 2;
      const u = gradients[0]![path]!.toNumbers().map((g, i) => g / (Math.abs(g) + 1e-6) + (isVector ? 0 : 0.1 * w[i]!));
      const ratio = isVector ? 1 : norm(w) / norm(u);
      expectNear(
        update[path]!,
        u.map((value) => -0.3 * ratio * value),
      );
    }
  });

  test("does not scale the update if the weight or the update is zero", () => {
    const zeros = { w: NdArray.from([[0, 0]]) };
    const [[update]] = walked(lars({ learningRate: 1, decay: 0 }), zeros, [{ w: NdArray.from([[3, 4]]) }]) as [
      [Record<string, number[]>],
    ];
    expectNear(update["w"]!, [-3, -4]);
    const still = walked(lars({ learningRate: 1 }), { w: NdArray.from([[1, 2]]) }, [zeros])[0]![0]!;
    expect(still["w"]!.map(Math.abs)).toEqual([0, 0]);
  });

  test.each([1, 2, 3, 5])("norms distributed over %d ranks equal those of a single rank", (numRanks) => {
    const tensors = [[3], [2, 5], [4, 4, 2], [1], [7]].map((shape, i) => normalArray(shape, i + 1));
    const fn = (all: readonly Tensor[]): Tensor[] => tensorNorms(all, "data");
    for (const rank of runRanks(
      fn,
      Array.from({ length: numRanks }, () => [tensors] as never),
    ))
      expectNear(
        (rank as unknown as NdArray[]).map((array) => array.item()),
        tensors.map((array) => norm(array.toNumbers())),
      );
  });
});

describe("shampoo", () => {
  const ridge = 1e-3;
  const bound = (a: readonly (readonly number[])[]): number =>
    Math.min(norm2(a.flat()), Math.max(...a.map((row) => row.reduce((sum, value) => sum + Math.abs(value), 0))));
  const norm2 = (values: readonly number[]): number => Math.hypot(...values);
  const greatest = (a: number[][]): number => Math.max(...eigen(a).values);
  const root = (moment: number[][], of = greatest): number[][] =>
    spectral(moment, (value) => (Math.max(value, 0) + ridge * of(moment)) ** -0.25);
  const sums = (matrices: readonly number[][][]): { left: number[][]; right: number[][] } => {
    const add = (a: number[][], b: number[][]): number[][] =>
      a.map((row, i) => row.map((value, j) => value + b[i]![j]!));
    return {
      left: matrices.map((g) => product(g, transposed(g))).reduce(add),
      right: matrices.map((g) => product(transposed(g), g)).reduce(add),
    };
  };

  test.each([
    { by: "eigen", of: greatest },
    { by: "newton", of: bound },
  ] as const)(
    "equals L^(−¼) ∇ R^(−¼) of all gradients so far, with the roots of the last refresh, by $by",
    ({ by, of }) => {
      const optimizer = chain(shampoo({ ridge, grafting: false, root: by }), scaleByLearningRate(1));
      const walk = walked(optimizer, params, gradients, { refresh: (step) => step !== 1 })[0]!;
      const matrices = gradients.map(({ wide }) => matrixOf(wide!.toNumbers(), 7));
      [1, 1, 3].forEach((numGradients, step) => {
        const { left, right } = sums(matrices.slice(0, numGradients));
        const expected = product(root(left, of), matrices[step]!, root(right, of)).flat();
        expectNear(
          walk[step]!["wide"]!,
          expected.map((value) => -value),
          2e-3,
        );
        expectNear(
          walk[step]!["bias"]!,
          gradients[step]!["bias"]!.toNumbers().map((value) => -value),
        );
      });
    },
  );

  test("treats each block separately, also if blocks do not divide the matrix", () => {
    const optimizer = chain(shampoo({ ridge, grafting: false, blockSize: 3 }), scaleByLearningRate(1));
    const [[update]] = walked(optimizer, params, gradients.slice(0, 1)) as [[Record<string, number[]>]];
    const matrix = matrixOf(gradients[0]!["wide"]!.toNumbers(), 7);
    // Seven columns in three blocks: three, three, and one with two zero columns.
    const expected = matrix.map((row) => row.map(() => 0));
    for (const begin of [0, 3, 6]) {
      const block = matrix.map((row) => [0, 1, 2].map((j) => row[begin + j] ?? 0));
      const { left, right } = sums([block]);
      product(root(left), block, root(right)).forEach((row, i) =>
        row.forEach((value, j) => {
          if (begin + j < 7) expected[i]![begin + j] = -value;
        }),
      );
    }
    expectNear(update["wide"]!, expected.flat(), 2e-3);
  });

  test.each([2, 3, 4])("roots distributed over %d ranks are equal on each", (numRanks) => {
    const [alone] = walked(shampoo({ blockSize: 3 }), params, gradients);
    for (const rank of walked(shampoo({ blockSize: 3, axis: "data" }), params, gradients, { numRanks }))
      expect(rank).toEqual(alone);
  });

  test("grafting gives each tensor the norm of its gradient", () => {
    const [updates] = walked(chain(shampoo(), scaleByLearningRate(1)), params, gradients)[0]!.slice(-1);
    for (const [path, update] of Object.entries(updates!))
      expect(norm2(update)).toBeCloseTo(norm2(gradients.at(-1)![path]!.toNumbers()), 3);
  });

  test("rejects options out of range", () => {
    expect(() => shampoo({ blockSize: 0 })).toThrow(/blockSize is 0/);
    expect(() => shampoo({ decay: 2 })).toThrow(/decay is 2/);
    expect(() => shampoo({ ridge: 0 })).toThrow(/ridge is 0/);
  });
});
