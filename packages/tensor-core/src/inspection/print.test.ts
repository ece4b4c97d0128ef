import { describe, expect, it } from "vitest";
import { allReduce } from "../functions/collective.ts";
import { add, divide, multiply, tanh } from "../functions/elementwise.ts";
import { matmul } from "../functions/linear.ts";
import { topK } from "../functions/reduce.ts";
import { optimize } from "../passes/optimize.ts";
import { graphCost } from "./cost.ts";
import { scope } from "../graph/emit.ts";
import { printGraph } from "./print.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";

const tensor = (...shape: number[]): Tensor => ({ dtype: "f32", shape }) as unknown as Tensor;

describe("printGraph", () => {
  it("prints a node per line, grouped by scope, with parameters that the result does not show", () => {
    const { graph } = trace(
      (x: Tensor, w: Tensor) => scope("dense1", () => add(matmul(x, w, { transposeB: true }), 1)),
      [tensor(2, 3), tensor(4, 3)],
    );
    expect(printGraph(graph).split("\n")).toEqual([
      "%0 = input() f32[2,3]",
      "%1 = input() f32[4,3]",
      "dense1",
      "  %2 = matmul(%0, %1) f32[2,4] {transposeB: true}",
      "  %3 = constant() f32[2,4] {value: 1}",
      "  %4 = add(%2, %3) f32[2,4]",
      "return %4",
    ]);
  });

  it("names single outputs, and prints a fused program as formulas", () => {
    const { graph } = trace(
      (x: Tensor, b: Tensor) => {
        const [values] = topK(x, 2);
        const y = tanh(add(values!, b));
        return [divide(y, multiply(add(y, 1), y)), y];
      },
      [tensor(4), tensor()],
    );
    expect(printGraph(optimize(graph)).split("\n").slice(2)).toEqual([
      "%2 = top-k(%0) (f32[2], i32[2]) {k: 2, sorted: true, by: value}",
      "%3 = fused(%2.0, %1) (f32[2], f32[2]) { out0 = tanh((%2.0 + broadcast(%1))); out1 = out0 / ((out0 + 1) * out0) }",
      "return %3.1, %3.0",
    ]);
  });

  it("adds the cost of each node on request", () => {
    const { graph } = trace((x: Tensor) => allReduce(matmul(x, x), "data"), [tensor(100, 100)], { mesh: { data: 2 } });
    const lines = printGraph(optimize(graph), { cost: true }).split("\n");
    expect(lines[1]).toBe("%1 = matmul(%0, %0) f32[100,100]  # 2 Mflop, 120 kB");
    expect(lines[3]).toBe("%3 = collective-done(%2) f32[100,100]");
  });
});

describe("graphCost", () => {
  it("adds up flops and bytes of all nodes", () => {
    const { graph } = trace((x: Tensor) => add(matmul(x, x), x), [tensor(10, 10)]);
    expect(graphCost(graph)).toEqual({ flops: 2000 + 100, bytesRead: 4 * 400, bytesWritten: 2 * 400 });
  });
});
