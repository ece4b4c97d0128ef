import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import type { ReferenceArray } from "../graph/operator.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { eliminateDeadCode } from "../passes/dead-code.ts";
import { interpretWorld } from "../reference/interpret.ts";
import { elementCount, type Shape } from "../shape.ts";
import {
  allGather,
  allReduce,
  allReduceMean,
  allToAll,
  axisIndex,
  broadcastFromRoot,
  reduceMeanToRoot,
  reduceScatter,
  reduceToRoot,
  sendReceive,
} from "./collective.ts";

const f32 = (shape: Shape): { dtype: "f32"; shape: Shape } => ({ dtype: "f32", shape });

/** Returns integers that differ between ranks and positions. All sums are exact. */
const values = (shape: Shape, rank: number, seed: number): ReferenceArray => ({
  spec: f32(shape),
  data: Float64Array.from({ length: elementCount(shape) }, (_, i) => ((i * 7 + rank * 13 + seed * 5) % 23) - 11),
});

const runWorld = (
  worldSize: number,
  fn: (x: Tensor) => Tensor,
  shape: Shape,
): { inputs: number[][]; outputs: number[][] } => {
  const { graph } = trace(fn, [f32(shape)], { mesh: { data: worldSize } });
  const inputs = Array.from({ length: worldSize }, (_, rank) => [values(shape, rank, 1)]);
  const outputs = interpretWorld(graph, inputs);
  return { inputs: inputs.map(([x]) => [...x!.data]), outputs: outputs.map(([y]) => [...y!.data]) };
};

const rows: readonly {
  readonly name: string;
  readonly fn: (x: Tensor) => Tensor;
  readonly shape: (worldSize: number) => Shape;
  readonly expected: (x: number[][], rank: number) => number[];
}[] = [
  {
    name: "all-reduce",
    fn: (x) => allReduce(x, "data"),
    shape: () => [3, 2],
    expected: (x) => x[0]!.map((_, i) => x.reduce((sum, row) => sum + row[i]!, 0)),
  },
  { name: "all-gather", fn: (x) => allGather(x, "data"), shape: () => [2, 3], expected: (x) => x.flat() },
  {
    name: "reduce-scatter",
    fn: (x) => reduceScatter(x, "data"),
    shape: (p) => [2 * p, 3],
    expected: (x, rank) => Array.from({ length: 6 }, (_, i) => x.reduce((sum, row) => sum + row[rank * 6 + i]!, 0)),
  },
  {
    name: "all-to-all",
    fn: (x) => allToAll(x, "data"),
    shape: (p) => [p, 2],
    expected: (x, rank) => x.flatMap((row) => row.slice(rank * 2, rank * 2 + 2)),
  },
  { name: "broadcast", fn: (x) => broadcastFromRoot(x, "data", 1), shape: () => [4], expected: (x) => x[1]! },
  {
    name: "send-receive",
    fn: (x) =>
      sendReceive(x, "data", [
        [0, 1],
        [1, 0],
      ]),
    shape: () => [4],
    expected: (x, rank) => (rank < 2 ? x[1 - rank]! : [0, 0, 0, 0]),
  },
  {
    name: "reduce",
    fn: (x) => reduceToRoot(x, "data", 1),
    shape: () => [3],
    expected: (x, rank) => (rank === 1 ? [0, 1, 2].map((i) => x.reduce((sum, row) => sum + row[i]!, 0)) : [0, 0, 0]),
  },
];

describe.each(rows)("$name", ({ fn, shape, expected }) => {
  test.each([2, 3, 5])("closed form on %i ranks", (worldSize) => {
    const { inputs, outputs } = runWorld(worldSize, fn, shape(worldSize));
    outputs.forEach((output, rank) => expect(output).toEqual(expected(inputs, rank)));
  });

  // ⟨A x, y⟩ = ⟨x, Aᵀ y⟩, both summed over all ranks: the definition of the adjoint.
  test.each([2, 3, 5])("gradient rule is the adjoint on %i ranks", (worldSize) => {
    const inputShape = shape(worldSize);
    const forward = trace(fn, [f32(inputShape)], { mesh: { data: worldSize } }).graph;
    const outputShape = forward.nodes[forward.outputs[0]!.node]!.specs[0]!.shape;
    const backward = trace((x: Tensor, y: Tensor) => vjp(fn, x).pullback(y), [f32(inputShape), f32(outputShape)], {
      mesh: { data: worldSize },
    }).graph;
    const x = Array.from({ length: worldSize }, (_, rank) => values(inputShape, rank, 1));
    const y = Array.from({ length: worldSize }, (_, rank) => values(outputShape, rank, 2));
    const ax = interpretWorld(
      forward,
      x.map((value) => [value]),
    ).map(([value]) => value!);
    const aty = interpretWorld(
      backward,
      x.map((value, rank) => [value, y[rank]!]),
    ).map(([value]) => value!);
    const dot = (a: ReferenceArray[], b: ReferenceArray[]): number =>
      a.reduce((sum, row, rank) => row.data.reduce((inner, value, i) => inner + value * b[rank]!.data[i]!, sum), 0);
    expect(dot(x, aty)).toBe(dot(ax, y));
    expect(dot(ax, y)).not.toBe(0);
  });
});

test("axis-index is the position along the axis", () => {
  const { outputs } = runWorld(4, () => axisIndex("data"), [1]);
  expect(outputs).toEqual([[0], [1], [2], [3]]);
});

test("max and min, and no gradient through them", () => {
  const { inputs, outputs } = runWorld(3, (x) => allReduce(x, "data", "max"), [5]);
  expect(outputs[2]).toEqual(inputs[0]!.map((_, i) => Math.max(...inputs.map((row) => row[i]!))));
  expect(() =>
    trace((x: Tensor) => vjp((own: Tensor) => allReduce(own, "data", "min"), x).pullback(x), [f32([5])], {
      mesh: { data: 3 },
    }),
  ).toThrow(/only for "sum"/);
});

test("the mean is the sum times 1/P", () => {
  const { inputs, outputs } = runWorld(4, (x) => allReduceMean(x, "data"), [5]);
  expect(outputs[3]).toEqual(inputs[0]!.map((_, i) => inputs.reduce((sum, row) => sum + row[i]!, 0) / 4));
});

test("the mean at the root is the sum there times 1/P", () => {
  const { inputs, outputs } = runWorld(4, (x) => reduceMeanToRoot(x, "data", 2), [5]);
  const zeros = [0, 0, 0, 0, 0];
  const mean = zeros.map((_, i) => inputs.reduce((sum, row) => sum + row[i]!, 0) / 4);
  expect(outputs).toEqual([zeros, zeros, mean, zeros]);
});

test("keeps a reduce that this rank does not read, because the root waits for it", () => {
  const { graph } = trace(
    (x: Tensor) => {
      reduceToRoot(x, "data", 1);
      return x;
    },
    [f32([3])],
    { mesh: { data: 2 } },
  );
  expect(eliminateDeadCode(graph).nodes.map(({ op }) => op)).toEqual(["input", "reduce"]);
});

test("one rank needs no node", () => {
  for (const { fn, name } of rows) {
    if (name === "send-receive" || name === "broadcast" || name === "reduce") continue;
    expect(trace(fn, [f32([4, 2])]).graph.nodes.map((node) => node.op)).toEqual(["input"]);
  }
});

test("bad arguments name the values and the cure", () => {
  const on = (worldSize: number, fn: (x: Tensor) => Tensor, shape: Shape) => () =>
    trace(fn, [f32(shape)], { mesh: { data: worldSize } });
  expect(on(3, (x) => reduceScatter(x, "data"), [4, 2])).toThrow(
    /dimension 0 of f32\[4, 2\] is not a multiple of the 3 ranks on axis "data"; pad it to 6/,
  );
  expect(on(3, (x) => allGather(x, "data"), [])).toThrow(/has no dimension 0/);
  for (const toOrFrom of [broadcastFromRoot, reduceToRoot, reduceMeanToRoot])
    expect(on(3, (x) => toOrFrom(x, "data", 3), [4])).toThrow(
      /root 3 is not a rank of axis "data", which has 3; use 0 to 2/,
    );
  expect(
    on(
      3,
      (x) =>
        sendReceive(x, "data", [
          [0, 1],
          [2, 1],
        ]),
      [4],
    ),
  ).toThrow(/twice as receiver/);
  const { graph } = trace((x: Tensor) => allReduce(x, "data"), [f32([2])], { mesh: { data: 3 } });
  expect(() => interpretWorld(graph, [[values([2], 0, 1)], [values([2], 1, 1)]])).toThrow(
    /traced for 3 ranks on axis "data" but runs on 2/,
  );
});
