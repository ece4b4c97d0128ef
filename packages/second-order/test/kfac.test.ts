import {
  allReduceMean,
  applyUpdates,
  chain,
  mapTree,
  momentum,
  NdArray,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  choleskyInverse,
  eigenInverse,
  findLayers,
  type InversePlacement,
  kfac,
  type KfacOptions,
  type KfacState,
  meanStatistics,
  observeLayers,
  placeBalanced,
  placeByBlocks,
  placeEverywhere,
  ownStatistics,
  placeGreedily,
  placeRoundRobin,
  placeWholeLayers,
} from "../src/index.ts";
import { gramOf, kronecker, type Matrix, plusDiagonal, solve, trace } from "./dense.ts";
import { type TestModel, testModels } from "./models.ts";
import { applyOnce, denseLayer, scalar } from "./steps.ts";
import { gridAxes, partsOf, runRanks } from "./world.ts";

const free = { size: "free" } as const;

const direction = (a: Matrix, g: Matrix, gradient: Matrix, options: Partial<KfacOptions>) =>
  applyOnce(
    kfac({ layers: [denseLayer(a.length, g.length)], ...free, ...options }),
    { w: NdArray.from(gradient) },
    { input: NdArray.from(a), gradient: NdArray.from(g) },
  );

/** Published example with dimensions in the order inputs, outputs; in the publication, outputs come first. */
const example = {
  a: [
    [2, 1],
    [1, 3],
  ],
  g: [
    [1, 0.5],
    [0.5, 2],
  ],
  gradient: [
    [1, 2],
    [0, -1],
  ],
};

const expectNear = (actual: readonly number[], expected: readonly number[], relative = 1e-4): void => {
  const size = Math.max(1e-20, ...expected.map(Math.abs));
  actual.forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(relative * size));
};

const entry = fc.integer({ min: -32, max: 32 }).map((value) => value / 16);
const matrix = (n: number, m: number) =>
  fc.array(fc.array(entry, { minLength: m, maxLength: m }), { minLength: n, maxLength: n });
const problem = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 })).chain(([n, m]) =>
  fc.record({
    a: matrix(n, n + 1).map((rows) => gramOf(rows, 0.05)),
    g: matrix(m, m + 1).map((rows) => gramOf(rows, 0.05)),
    gradient: matrix(n, m),
    damping: fc.constantFrom(0.003, 0.1, 5),
  }),
);

describe("kfac through Cholesky factors", () => {
  test("returns the value computed by hand", () => {
    const { updates } = direction(example.a, example.g, example.gradient, { damping: 0.1 });
    expectNear(updates["w"]!, [0.20406098, 0.43760592, -0.00222563, -0.27193142], 1e-6);
  });

  test("equals the dense solve with the product of both damped factors", () => {
    fc.assert(
      fc.property(problem, ({ a, g, gradient, damping }) => {
        const pi = Math.sqrt(trace(a) / a.length / (trace(g) / g.length));
        const dense = kronecker(plusDiagonal(a, pi * Math.sqrt(damping)), plusDiagonal(g, Math.sqrt(damping) / pi));
        expectNear(direction(a, g, gradient, { damping }).updates["w"]!, solve(dense, gradient.flat()), 5e-4);
      }),
      { numRuns: 60 },
    );
  });

  test("does not depend on the split of a scale between the factors, and tends to the gradient over γ for large damping", () => {
    fc.assert(
      fc.property(problem, fc.constantFrom(0.01, 7, 300), ({ a, g, gradient, damping }, scale) => {
        const times = (rows: Matrix, by: number): number[][] => rows.map((row) => row.map((value) => value * by));
        const plain = direction(a, g, gradient, { damping }).updates["w"]!;
        expectNear(direction(times(a, scale), times(g, 1 / scale), gradient, { damping }).updates["w"]!, plain, 2e-3);
        const damped = direction(a, g, gradient, { damping: 1e8 }).updates["w"]!;
        expectNear(
          damped,
          gradient.flat().map((value) => value / 1e8),
          2e-3,
        );
      }),
      { numRuns: 30 },
    );
  });

  test("never adds damping to the running mean", () => {
    const { state } = direction(example.a, example.g, example.gradient, { damping: 3 });
    const { w } = (state as KfacState).shared.factors as unknown as { w: { input: NdArray; gradient: NdArray } };
    expect([w.input.toNumbers(), w.gradient.toNumbers()]).toEqual([example.a.flat(), example.g.flat()]);
  });

  test("keeps and flags the previous tensors of a factor that is not positive definite or not finite", () => {
    const bad = [
      [-5, 0],
      [0, 1],
    ];
    const { state, updates } = direction(bad, example.g, example.gradient, { damping: 0.01 });
    expect(((state as KfacState).shared.stale as unknown as NdArray).toNumbers()).toEqual([1, 0]);
    expect(updates["w"]!.every(Number.isFinite)).toBe(true);
    const endless = direction(
      [
        [Infinity, 0],
        [0, 1],
      ],
      example.g,
      example.gradient,
      { damping: 0.01 },
    );
    expect(endless.updates["w"]!.every(Number.isFinite)).toBe(true);
  });

  test("gives finite updates for a layer with zero statistics", () => {
    const nothing = [
      [0, 0],
      [0, 0],
    ];
    for (const [a, g] of [
      [nothing, example.g],
      [example.a, nothing],
      [nothing, nothing],
    ] as const)
      expect(direction(a, g, example.gradient, { damping: 0.03 }).updates["w"]!.every(Number.isFinite)).toBe(true);
  });

  test("its clip: ν of the published example, and 1 for a learning rate of 0", () => {
    const nuOf = (learningRate: number): number => {
      const { state } = direction(example.a, example.g, example.gradient, {
        damping: 0.1,
        size: "kl-clip",
        klClip: 1e-3,
        learningRate,
      });
      return scalar((state as KfacState).figures.sizeFactor);
    };
    expect(nuOf(0.1)).toBeCloseTo(Math.sqrt(1e-3 / (0.01 * 1.35120423)), 6);
    expect(nuOf(0)).toBe(1);
  });
});

describe("kfac through eigenvectors", () => {
  test("returns the value computed by hand, and its ν", () => {
    const { updates } = direction(example.a, example.g, example.gradient, { damping: 0.1, inverse: eigenInverse });
    expectNear(updates["w"]!, [0.27916797, 0.60810639, -0.00143781, -0.38584263], 1e-6);
    const { state } = direction(example.a, example.g, example.gradient, {
      damping: 0.1,
      inverse: eigenInverse,
      size: "kl-clip",
      klClip: 1e-3,
      learningRate: 0.1,
    });
    expect(scalar((state as KfacState).figures.sizeFactor)).toBeCloseTo(0.2305578, 6);
  });

  test("equals the dense solve with the damped product", () => {
    fc.assert(
      fc.property(problem, ({ a, g, gradient, damping }) => {
        const dense = plusDiagonal(kronecker(a, g), damping);
        const { updates } = direction(a, g, gradient, { damping, inverse: eigenInverse });
        expectNear(updates["w"]!, solve(dense, gradient.flat()), 5e-4);
      }),
      { numRuns: 60 },
    );
  });
});

/** Returns a copy of a matrix, with zeros outside its diagonal blocks. */
const inBlocks = (matrix: Matrix, size: number): number[][] =>
  matrix.map((row, i) => row.map((value, j) => (Math.floor(i / size) === Math.floor(j / size) ? value : 0)));

/** Returns a matrix in the storage format of factor blocks: [blocks, size, size], with zeros after the last row. */
const stacked = (matrix: Matrix, size: number): NdArray => {
  const count = Math.ceil(matrix.length / size);
  const entry = (block: number, i: number, j: number): number => matrix[block * size + i]?.[block * size + j] ?? 0;
  const each = Array.from({ length: size }, (_, i) => i);
  return NdArray.from(
    Array.from({ length: count }, (_, block) => each.flatMap((i) => each.map((j) => entry(block, i, j)))).flat(),
    [count, size, size],
  );
};

describe("kfac in blocks", () => {
  test("equals the dense solve with the blocks of both factors, with and without padding", () => {
    const sized = fc.tuple(fc.integer({ min: 3, max: 5 }), fc.integer({ min: 3, max: 4 })).chain(([n, m]) =>
      fc.record({
        a: matrix(n, n + 1).map((rows) => gramOf(rows, 0.05)),
        g: matrix(m, m + 1).map((rows) => gramOf(rows, 0.05)),
        gradient: matrix(n, m),
        damping: fc.constantFrom(0.01, 0.1, 5),
        isEigen: fc.boolean(),
      }),
    );
    fc.assert(
      fc.property(sized, ({ a, g, gradient, damping, isEigen }) => {
        const size = (length: number): number => Math.ceil(length / Math.ceil(length / 2));
        const { updates } = applyOnce(
          kfac({
            layers: [denseLayer(a.length, g.length)],
            ...free,
            damping,
            blockSize: 2,
            inverse: isEigen ? eigenInverse : choleskyInverse,
          }),
          { w: NdArray.from(gradient) },
          { input: stacked(a, size(a.length)), gradient: stacked(g, size(g.length)) },
        );
        const pi = Math.sqrt(trace(a) / a.length / (trace(g) / g.length));
        const [blocksA, blocksG] = [inBlocks(a, size(a.length)), inBlocks(g, size(g.length))];
        const dense = isEigen
          ? plusDiagonal(kronecker(blocksA, blocksG), damping)
          : kronecker(plusDiagonal(blocksA, pi * Math.sqrt(damping)), plusDiagonal(blocksG, Math.sqrt(damping) / pi));
        expectNear(updates["w"]!, solve(dense, gradient.flat()), 1e-3);
      }),
      { numRuns: 60 },
    );
  });
});

interface Placed {
  readonly numRanks: number;
  readonly placement: (paths: readonly string[]) => InversePlacement;
  /** Ranks that have the factors: see `KfacDistribution`. With `own`, every rank gets all samples. Default: "mean". */
  readonly factors?: "mean" | "mean-at-owner" | "own";
  readonly options?: Partial<KfacOptions>;
}

/** Runs three steps of K-FAC training, one of them without a refresh. Returns the parameters of each rank. */
const trained = (model: TestModel, { numRanks, placement, factors = "mean", options }: Placed): number[][] => {
  const samples = 4;
  const isOwner = factors === "own";
  const { layers } = findLayers(valueAndGrad(model.loss), [model.params as never, model.batch(2, 1) as never]);
  const placed = placement(layers.map(({ path }) => path));
  const preconditioner = kfac({
    layers,
    damping: 0.1,
    learningRate: 0.05,
    klClip: 0.01,
    distribution: { axis: "data", placement: placed, grid: gridAxes, factors },
    ...options,
  });
  const optimizer = chain(preconditioner, momentum({ learningRate: 0.05 }));
  type Tensors = Readonly<Record<string, Tensor>>;
  const step = (params: Tensors, batches: readonly Tensors[]): Tensors => {
    let [own, state] = [params, optimizer.init(params)];
    batches.forEach((batch, number) => {
      const { result, statistics } = observeLayers(valueAndGrad(model.loss), [own, batch], {
        statistic: preconditioner.statistic,
        samples: isOwner ? samples : samples / numRanks,
        ...(preconditioner.wants !== undefined && { wants: preconditioner.wants }),
        collector: isOwner
          ? ownStatistics()
          : meanStatistics({
              axis: "data",
              ...(preconditioner.ownerOf !== undefined && { ownerOf: preconditioner.ownerOf }),
            }),
      });
      const gradients = mapTree(result[1], (gradient: Tensor) => allReduceMean(gradient, "data")) as Tensors;
      state = optimizer.observe!(state, statistics as never, { refresh: number !== 1 });
      const [updates, next] = optimizer.update(gradients, state, { params: own });
      [own, state] = [applyUpdates(own, updates), next];
    });
    return own;
  };
  const batches = [1, 2, 3].map((seed) => {
    const batch = model.batch(samples, 10 * seed);
    return isOwner ? Array.from({ length: numRanks }, () => batch) : partsOf(batch, numRanks);
  });
  const ranks = Array.from({ length: numRanks }, (_, rank) => [model.params, batches.map((parts) => parts[rank])]);
  return runRanks(step as never, ranks as never, placed.workers).map((params) =>
    Object.values(params as Readonly<Record<string, NdArray>>).flatMap((array) => array.toNumbers()),
  );
};

/** Returns a placement like KAISA's: `workers` rows, layers round-robin over columns, A and G on different rows. */
const onGrid =
  (workers: number, numRanks: number) =>
  (paths: readonly string[]): InversePlacement => ({
    workers,
    layers: Object.fromEntries(
      paths.map((path, i) => [
        path,
        { column: i % (numRanks / workers), input: i % workers, gradient: (i + 1) % workers },
      ]),
    ),
  });

/** Placement with both factors of a layer on one rank. */
const together =
  (workers: number, numRanks: number) =>
  (paths: readonly string[]): InversePlacement => {
    const { layers } = onGrid(workers, numRanks)(paths);
    return {
      workers,
      layers: Object.fromEntries(
        Object.entries(layers).map(([path, place]) => [path, { ...place, gradient: place.input }]),
      ),
    };
  };

describe.each(testModels)("kfac on ranks: $name", (model) => {
  const [alone] = trained(model, { numRanks: 1, placement: (paths) => placeEverywhere(paths, 1) });
  const rows = [2, 4].flatMap((numRanks) => [
    {
      name: `everywhere on ${numRanks}`,
      numRanks,
      placement: (paths: readonly string[]) => placeEverywhere(paths, numRanks),
    },
    {
      name: `in turn on ${numRanks}`,
      numRanks,
      placement: (paths: readonly string[]) => placeRoundRobin(paths, numRanks),
    },
    ...[1, 2, 4]
      .filter((workers) => workers <= numRanks)
      .map((workers) => ({
        name: `${workers} gradient workers of ${numRanks}`,
        numRanks,
        placement: onGrid(workers, numRanks),
      })),
    {
      name: `each layer wholly on one of ${numRanks} that have the same samples`,
      numRanks,
      placement: (paths: readonly string[]) => placeWholeLayers(paths, numRanks),
      factors: "own" as const,
    },
    ...[1, 2].map((workers) => ({
      name: `factors reduced to who inverts them, ${workers} gradient workers of ${numRanks}`,
      numRanks,
      factors: "mean-at-owner" as const,
      placement: together(workers, numRanks),
    })),
    {
      name: `factors reduced to who inverts them, or to all where all do, on ${numRanks}`,
      numRanks,
      factors: "mean-at-owner" as const,
      placement: (paths: readonly string[]): InversePlacement => ({
        workers: numRanks,
        layers: Object.fromEntries(
          paths.map((path, i) => {
            const row = i % 2 === 0 ? "everywhere" : i % numRanks;
            return [path, { column: 0, input: row, gradient: row } as const];
          }),
        ),
      }),
    },
    {
      name: `some factors sent, some inverted everywhere, on ${numRanks}`,
      numRanks,
      placement: (paths: readonly string[]) =>
        placeBalanced(
          paths.map((path, i) => ({ path, numInputs: i + 1, numOutputs: 3 - i })),
          numRanks,
          { inverseSeconds: (size) => size, broadcastSeconds: () => 2 },
        ),
    },
    {
      name: `largest first on a grid of ${numRanks}`,
      numRanks,
      placement: (paths: readonly string[]) =>
        placeGreedily(
          paths.map((path, i) => ({ path, numInputs: i + 1, numOutputs: 2 })),
          { numRanks, workers: 2, isColocated: false },
        ),
    },
  ]);

  test.each(rows)("$name: each rank has the parameters of a single rank with all samples", (placed) => {
    const before = Object.values(model.params).flatMap((array) => array.toNumbers());
    expect(alone).not.toEqual(before);
    const ranks = trained(model, placed);
    for (const own of ranks) {
      expect(own).toEqual(ranks[0]);
      own.forEach((value, i) => expect(Math.abs(value - alone![i]!)).toBeLessThan(2e-6 * (1 + Math.abs(alone![i]!))));
    }
  });
});

describe.each([
  { name: "eigenvectors", options: { inverse: eigenInverse } },
  { name: "blocks", options: { blockSize: 2 } },
  { name: "eigenvectors of blocks", options: { inverse: eigenInverse, blockSize: 2 } },
])("kfac by $name on ranks", ({ options }) => {
  const [, model] = testModels as readonly [TestModel, TestModel];
  const [alone] = trained(model, { numRanks: 1, placement: (paths) => placeEverywhere(paths, 1), options });

  test.each([
    { name: "in turn", placement: (paths: readonly string[]) => placeRoundRobin(paths, 4) },
    { name: "on a grid", placement: onGrid(2, 4) },
    { name: "at owners", placement: together(2, 4), factors: "mean-at-owner" as const },
    { name: "blocks shared out", placement: (paths: readonly string[]) => placeByBlocks(paths, 4, 2) },
    { name: "blocks shared out over all", placement: (paths: readonly string[]) => placeByBlocks(paths, 4, 4) },
    {
      name: "blocks shared out, factors of each rank's own samples, the same on all",
      placement: (paths: readonly string[]) => placeByBlocks(paths, 4, 2),
      factors: "own" as const,
    },
  ])("$name: the parameters of a single rank", (placed) => {
    for (const own of trained(model, { numRanks: 4, options, ...placed }))
      own.forEach((value, i) => expect(Math.abs(value - alone![i]!)).toBeLessThan(5e-6 * (1 + Math.abs(alone![i]!))));
  });
});

test("rejects placements that do not match the ranks or the layers in one line", () => {
  const [model] = testModels as readonly [TestModel, ...TestModel[]];
  const refused = (placement: Placed["placement"]) => () => trained(model, { numRanks: 2, placement });
  expect(refused(() => ({ workers: 3, layers: {} }))).toThrow(/3 gradient workers do not divide 2 ranks/);
  expect(refused(() => ({ workers: 2, layers: {} }))).toThrow(/layer w1 is not placed/);
  expect(refused((paths) => placeRoundRobin(paths, 4))).toThrow(/4 gradient workers do not divide 2/);
  expect(() => trained(model, { numRanks: 2, placement: onGrid(2, 2), factors: "mean-at-owner" })).toThrow(
    /factors of w1 are inverted at rows 0 and 1, but a rank keeps.*place both factors of a layer on one rank/,
  );
  const far = { column: 1, input: 0, gradient: 0 };
  expect(refused((paths) => ({ workers: 2, layers: Object.fromEntries(paths.map((path) => [path, far])) }))).toThrow(
    /layer w1 is at column 1, rows 0 and 0, of a grid of 2 rows and 1 columns/,
  );
});
