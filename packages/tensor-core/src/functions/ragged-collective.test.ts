import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import type { DType } from "../dtype.ts";
import type { ReferenceArray } from "../graph/operator.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { optimize } from "../passes/optimize.ts";
import { interpretWorld } from "../reference/interpret.ts";
import { elementCount, type Shape } from "../shape.ts";
import { type RaggedResult, allReduce, raggedAllGather, raggedAllToAll } from "./collective.ts";
import { multiply, subtract } from "./elementwise.ts";
import { sum } from "./reduce.ts";

const spec = (dtype: DType, shape: Shape): { dtype: DType; shape: Shape } => ({ dtype, shape });

/** Returns nonzero integers that differ between ranks and positions. Sums are exact, and zeros can only be padding. */
const values = (dtype: DType, shape: Shape, rank: number, seed = 1): ReferenceArray => ({
  spec: spec(dtype, shape),
  data: Float64Array.from({ length: elementCount(shape) }, (_, i) => 1 + ((i * 7 + rank * 13 + seed * 5) % 23)),
});
const counts = (shape: Shape, data: readonly number[]): ReferenceArray => ({
  spec: spec("i32", shape),
  data: Float64Array.from(data),
});

interface Case {
  readonly name: "ragged-all-to-all" | "ragged-all-gather";
  readonly fn: (x: Tensor, rows: Tensor) => RaggedResult;
  readonly chunks: (worldSize: number) => number;
  readonly countShape: (worldSize: number) => Shape;
}

const cases: readonly Case[] = [
  {
    name: "ragged-all-to-all",
    fn: (x, rows) => raggedAllToAll(x, rows, "data"),
    chunks: (worldSize) => worldSize,
    countShape: (worldSize) => [worldSize],
  },
  {
    name: "ragged-all-gather",
    fn: (x, rows) => raggedAllGather(x, rows, "data"),
    chunks: () => 1,
    countShape: () => [],
  },
];

interface World {
  readonly worldSize: number;
  readonly capacity: number;
  readonly width: number;
  /** Row counts of each rank: one count per receiver, or a single count for all receivers. */
  readonly rows: readonly (readonly number[])[];
}

const world = ({ chunks }: Case): fc.Arbitrary<World> =>
  fc
    .record({
      worldSize: fc.integer({ min: 1, max: 6 }),
      capacity: fc.integer({ min: 0, max: 4 }),
      width: fc.integer({ min: 0, max: 3 }),
    })
    .chain((size) =>
      fc.record({
        worldSize: fc.constant(size.worldSize),
        capacity: fc.constant(size.capacity),
        width: fc.constant(size.width),
        rows: fc.array(
          fc.array(fc.integer({ min: 0, max: size.capacity }), {
            minLength: chunks(size.worldSize),
            maxLength: chunks(size.worldSize),
          }),
          { minLength: size.worldSize, maxLength: size.worldSize },
        ),
      }),
    );

/** Computes the expected result of rank `to`, row by row. */
const expected = (
  x: readonly ReferenceArray[],
  { capacity, width, rows }: World,
  to: number,
): { x: number[]; rows: number[] } => {
  const received = rows.map((row) => row[row.length === 1 ? 0 : to]!);
  const result = x.flatMap(({ data }, from) =>
    Array.from({ length: capacity }, (_, row) => row).flatMap((row) => {
      const begin = ((rows[from]!.length === 1 ? 0 : to) * capacity + row) * width;
      return row < received[from]! ? [...data.subarray(begin, begin + width)] : new Array<number>(width).fill(0);
    }),
  );
  return { x: result, rows: received };
};

/** Converts a result to a list, because records are flattened in name order. */
const inOrder = ({ x, rows }: RaggedResult): Tensor[] => [x, rows];

const traced = (
  fn: (...inputs: Tensor[]) => unknown,
  inputs: readonly ReferenceArray[],
  worldSize: number,
): ReturnType<typeof trace> =>
  trace(fn as (...args: readonly unknown[]) => unknown, inputs.map((input) => input.spec) as never, {
    mesh: { data: worldSize },
  });

const run = (fn: (...inputs: Tensor[]) => unknown, inputs: readonly (readonly ReferenceArray[])[]): number[][][] =>
  interpretWorld(traced(fn, inputs[0]!, inputs.length).graph, inputs).map((rank) => rank.map(({ data }) => [...data]));

describe.each(cases)("$name", (row) => {
  const inputsOf = (dtype: DType, { worldSize, capacity, width, rows }: World): ReferenceArray[][] =>
    rows.map((own, rank) => [
      values(dtype, [row.chunks(worldSize) * capacity, width], rank),
      counts(row.countShape(worldSize), own),
    ]);

  test("equals the closed form, before and after optimization: any counts, no rows, rows without elements, one rank", () => {
    fc.assert(
      fc.property(world(row), fc.constantFrom<DType>("f32", "f16", "bf16", "i32", "u32", "u8"), (setting, dtype) => {
        const inputs = inputsOf(dtype, setting);
        const { graph } = traced((x, rows) => inOrder(row.fn(x!, rows!)), inputs[0]!, setting.worldSize);
        for (const one of [graph, optimize(graph)]) {
          interpretWorld(one, inputs).forEach(([x, rows], rank) => {
            const wanted = expected(
              inputs.map(([own]) => own!),
              setting,
              rank,
            );
            expect({ x: [...x!.data], rows: [...rows!.data] }, `rank ${rank}`).toEqual(wanted);
          });
        }
      }),
    );
  });

  // ⟨A x, y⟩ = ⟨x, Aᵀ y⟩, both summed over all ranks: the definition of the adjoint. Rows that are not sent have no
  // gradient.
  test("gradient rule is the adjoint, and its own gradient rule is that of the adjoint", () => {
    const dot = (a: readonly number[][], b: readonly number[][]): number =>
      a.reduce((total, data, rank) => data.reduce((inner, value, i) => inner + value * b[rank]![i]!, total), 0);
    fc.assert(
      fc.property(world(row), (setting) => {
        const { worldSize, capacity, width } = setting;
        const inputs = inputsOf("f32", setting).map((own, rank) => [
          ...own,
          values("f32", [worldSize * capacity, width], rank, 2),
          values("f32", [row.chunks(worldSize) * capacity, width], rank, 3),
        ]);
        const forward = (x: Tensor, rows: Tensor): Tensor => row.fn(x, rows).x;
        const outputs = run((x, rows, y, z) => {
          const { value, pullback } = vjp((own: Tensor) => forward(own, rows!), x!);
          const backward = vjp((own: Tensor) => vjp((primal: Tensor) => forward(primal, rows!), x!).pullback(own), y!);
          return [value, pullback(y!), backward.pullback(z!)];
        }, inputs);
        const [ax, aty, az] = [0, 1, 2].map((i) => outputs.map((rank) => rank[i]!)) as [
          number[][],
          number[][],
          number[][],
        ];
        const [x, , y, z] = [0, 1, 2, 3].map((i) => inputs.map((rank) => [...rank[i]!.data])) as [
          number[][],
          number[][],
          number[][],
          number[][],
        ];
        expect(dot(x, aty)).toBe(dot(ax, y));
        expect(dot(az, y)).toBe(dot(z, aty));
      }),
    );
  });

  test("a 16-bit gradient is added in f32 and returned in 16 bits", () => {
    const setting = {
      worldSize: 3,
      capacity: 2,
      width: 1,
      rows: [0, 1, 2].map((rank) => (row.chunks(3) === 3 ? [rank, 1, 2] : [rank])),
    };
    const inputs = inputsOf("f16", setting).map((own, rank) => [...own, values("f16", [6, 1], rank, 2)]);
    const { graph } = traced(
      (x, rows, y) => vjp((own: Tensor) => row.fn(own, rows!).x, x!).pullback(y!),
      inputs[0]!,
      3,
    );
    expect(graph.nodes[graph.outputs[0]!.node]!.specs[0]).toEqual(inputs[0]![0]!.spec);
    const [x, y] = [0, 2].map((i) => inputs.map((own) => own[i]!.data));
    const back = interpretWorld(graph, inputs).map(([gradient]) => gradient!.data);
    const there = inputs.map(
      (_, rank) =>
        expected(
          inputs.map(([own]) => own!),
          setting,
          rank,
        ).x,
    );
    const total = (a: readonly ArrayLike<number>[], b: readonly ArrayLike<number>[]): number =>
      a.reduce(
        (sumOf, data, rank) => sumOf + Array.from(data).reduce((inner, value, i) => inner + value * b[rank]![i]!, 0),
        0,
      );
    expect(total(x!, back)).toBe(total(there, y!));
  });

  test.each([-1, 3, 2 ** 31 - 1, -(2 ** 31)])("a count of %i of 2 rows fails the run, and names the rank", (count) => {
    for (const worldSize of [1, 3]) {
      const rows = Array.from({ length: worldSize }, () => new Array<number>(row.chunks(worldSize)).fill(2));
      rows[worldSize - 1]![row.chunks(worldSize) - 1] = count;
      expect(() =>
        run((x, own) => row.fn(x!, own!), inputsOf("f32", { worldSize, capacity: 2, width: 1, rows })),
      ).toThrow(
        new RegExp(`rank ${worldSize - 1} is asked to send ${count} rows.*, but its chunks have 2; count 0 to 2 rows`),
      );
    }
  });

  test("rejects mismatched operands while tracing", () => {
    const on = (x: ReferenceArray, rows: ReferenceArray) => () => traced((a, b) => row.fn(a!, b!), [x, rows], 3);
    const good = counts(row.countShape(3), [1, 1, 1].slice(0, elementCount(row.countShape(3))));
    expect(on(values("f32", [6, 2], 0), good)).not.toThrow();
    expect(on(values("f32", [], 0), good)).toThrow(/has no dimension 0/);
    expect(on(values("f32", [6, 2], 0), counts([4], [1, 1, 1, 1]))).toThrow(
      /rows is i32\[4\], but 3 ranks on axis "data" need i32\[3?\]/,
    );
    expect(on(values("f32", [6, 2], 0), { ...good, spec: spec("u32", good.spec.shape) })).toThrow(/rows is u32/);
  });

  test("one rank keeps the node, because row counts apply there, too", () => {
    const { graph } = traced(
      (x, rows) => row.fn(x!, rows!),
      [values("f32", [2, 1], 0), counts(row.countShape(1), [1])],
      1,
    );
    expect(graph.nodes.map(({ op }) => op)).toContain(row.name);
  });
});

test("rejects an operand of all-to-all with unequal chunks", () => {
  expect(() =>
    traced((x, rows) => raggedAllToAll(x!, rows!, "data"), [values("f32", [4], 0), counts([3], [1, 1, 1])], 3),
  ).toThrow(/dimension 0 of f32\[4\] is not a multiple of the 3 ranks on axis "data"; pad it to 6/);
});

// A minimal mixture of experts: rows are sent, scaled by the receiver, and returned with the received counts.
test("two steps of gradient descent through a round trip equal those without any exchange", () => {
  const worldSize = 3;
  const [capacity, width] = [2, 2];
  const shape = [worldSize * capacity, width];
  const rows = [
    [2, 0, 1],
    [1, 2, 0],
    [0, 0, 2],
  ];
  const inputs = rows.map((own, rank) => [
    { spec: spec("f32", [width]), data: Float64Array.from([0.5, 0.25]) },
    values("f32", shape, rank),
    counts([worldSize], own),
  ]);
  const train = (scale: Tensor, step: (scale: Tensor) => Tensor): Tensor[] => {
    const losses: Tensor[] = [];
    let current = scale;
    for (let i = 0; i < 2; i++) {
      const { value, pullback } = vjp((own: Tensor) => step(own), current);
      losses.push(value);
      current = subtract(current, multiply(allReduce(pullback(value), "data"), 2 ** -14));
    }
    return [...losses, current];
  };
  const exchanged = run((scale, x, counted) => {
    const there = raggedAllToAll(x!, counted!, "data");
    return train(scale!, (own) => {
      const back = raggedAllToAll(multiply(there.x, own), there.rows, "data");
      return sum(multiply(back.x, multiply(back.x, 2 ** -10)));
    });
  }, inputs);
  // Expected returned rows: rows beyond the counts are zero, because they were not sent.
  const masked = inputs.map(([scale, x, counted]) => [
    scale!,
    {
      spec: x!.spec,
      data: x!.data.map((value, i) =>
        Math.floor(i / width) % capacity < counted!.data[Math.floor(i / width / capacity)]! ? value : 0,
      ),
    },
  ]);
  const local = run(
    (scale, x) =>
      train(scale!, (own) => {
        const scaled = multiply(x!, own);
        return sum(multiply(scaled, multiply(scaled, 2 ** -10)));
      }),
    masked,
  );
  expect(exchanged).toEqual(local);
  expect(exchanged[0]![2]).not.toEqual([0.5, 0.25]);
});

describe("priority", () => {
  test("is a parameter of the node, and of its gradient", () => {
    const { graph } = traced(
      (x, rows) =>
        vjp(
          (own: Tensor) =>
            raggedAllToAll(allReduce(own, "data", "sum", { priority: 2 }), rows!, "data", { priority: 3 }).x,
          x!,
        ).pullback(x!),
      [values("f32", [4, 1], 0), counts([2], [1, 2])],
      2,
    );
    const priorities = graph.nodes.flatMap(({ op, params }) =>
      params["priority"] === undefined ? [] : [`${op} ${String(params["priority"])}`],
    );
    expect(priorities).toEqual(["all-reduce 2", "ragged-all-to-all 3", "ragged-all-to-all 3", "all-reduce 2"]);
  });

  test.each([-1, 4, 1.5, NaN])("rejects %d", (priority) => {
    expect(() => traced((x) => allReduce(x!, "data", "sum", { priority }), [values("f32", [4], 0)], 2)).toThrow(
      /allReduce: priority .* along axis "data" is not one of 0, 1, 2, 3/,
    );
  });
});
