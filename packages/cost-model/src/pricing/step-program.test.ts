import { add, allReduce, type Graph, matmul, multiply, reshape, scope, type Tensor, trace } from "@skein/tensor-core";
import { optimize, planMemory } from "@skein/tensor-core/backend";
import { expect, test } from "vitest";
import { madeUpDevice } from "../../test/made-up-device.ts";
import { collectivePricer } from "./collective-price.ts";
import { computeSeconds, type PreparedGraph, stepProgram } from "./step-program.ts";

const device = madeUpDevice();
const spec = (...shape: number[]) => ({ dtype: "f32", shape }) as const;
const prepare = (graph: Graph): PreparedGraph => {
  const ready = optimize(graph);
  return { graph: ready, settled: planMemory(ready).settled };
};
const traced = (fn: (...args: Tensor[]) => unknown, ...specs: ReturnType<typeof spec>[]): PreparedGraph =>
  prepare(trace(fn as never, specs as never, { mesh: { data: 4 } }).graph);

test("a product is priced by its flops, a fused chain once by its own bytes, and a view is free", () => {
  const step = traced(
    (x, w) => {
      const y = scope("layer", () => matmul(x!, w!)); // matmul of [64, 64]: 2 · 64³ flops
      return scope("tail", () => reshape(add(multiply(y, y), 1), [4096]));
    },
    spec(64, 64),
    spec(64, 64),
  );
  const program = stepProgram(step, { device, collectives: {} });
  expect(program.map(({ name }) => name)).toEqual(["matmul layer", "fused tail"]);
  const [product, chain] = program as [
    Extract<(typeof program)[number], { kind: "kernel" }>,
    Extract<(typeof program)[number], { kind: "kernel" }>,
  ];
  expect(product.price).toMatchObject({ flops: 2 * 64 ** 3, bytes: 3 * 4 * 4096, boundBy: "flops", basis: "assumed" });
  expect(product.price.seconds).toBeCloseTo(1e-6 + (2 * 64 ** 3) / 1e9 / 0.5, 12);
  expect(chain.price).toMatchObject({ bytes: 2 * 4 * 4096, boundBy: "bytes" });
  expect(computeSeconds(program)).toBeCloseTo(product.price.seconds + chain.price.seconds, 15);
});

test("a collective is a start and a wait, with the price of the schedule that would be chosen", () => {
  const step = traced(
    (x) =>
      add(
        scope("exchange-0", () => allReduce(multiply(x!, 2), "data")),
        1,
      ),
    spec(1000),
  );
  const pricer = collectivePricer({ worldSize: 4, sharesMemory: false });
  const program = stepProgram(step, { device, collectives: { data: pricer } });
  expect(program.map(({ kind, name }) => [kind, name])).toEqual([
    ["kernel", expect.any(String)],
    ["start", "all-reduce exchange-0"],
    ["wait", "all-reduce exchange-0"],
    ["kernel", expect.any(String)],
  ]);
  expect(program[1]).toMatchObject({ axis: "data", bytes: 4000, price: pricer("all-reduce", 4000) });
  expect(program[2]).toMatchObject({ start: 1 });
  expect(() => stepProgram(step, { device, collectives: {} })).toThrow(/along axis "data", which has no pricer/);
});
