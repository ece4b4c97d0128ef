import { describe, expect, test } from "vitest";
import {
  attention,
  cast,
  gelu,
  type Graph,
  matmul,
  mean,
  multiply,
  reshape,
  scope,
  subtract,
  type Tensor,
  trace,
  transpose,
  valueAndGrad,
} from "../index.ts";
import { interpretWorld, optimize, widenHalf } from "../backend.ts";
import { mixedPrecision } from "./mixed-precision.ts";

const spec = (...shape: number[]): { dtype: "f32"; shape: number[] } => ({ dtype: "f32", shape });

/** Training step of a model with two linear layers and attention between them, updated by plain gradient descent. */
const step = (params: { a: Tensor; b: Tensor }, x: Tensor): unknown => {
  const loss = (p: { a: Tensor; b: Tensor }): Tensor => {
    const h = reshape(matmul(x, transpose(p.a)), [1, 2, 3, 4]);
    const y = matmul(gelu(reshape(attention(h, h, h), [6, 4])), p.b);
    return mean(multiply(y, y));
  };
  const [value, gradients] = valueAndGrad(loss)(params);
  return {
    value,
    a: subtract(params.a, multiply(gradients.a, 0.1)),
    b: subtract(params.b, multiply(gradients.b, 0.1)),
  };
};

const traced = (): Graph => trace(step as never, [{ a: spec(4, 5), b: spec(4, 3) }, spec(6, 5)] as never).graph;

const inputsOf = (graph: Graph) =>
  graph.inputs.map((id, k) => {
    const own = graph.nodes[id]!.specs[0]!;
    const count = own.shape.reduce((product, size) => product * size, 1);
    return { spec: own, data: Float64Array.from({ length: count }, (_, i) => Math.sin(3 * i + k)) };
  });

const halves = ["f16", "bf16"] as const;

const products = ["matmul", "attention", "attention-backward"];

describe("mixedPrecision", () => {
  test.each(halves)("products read and store %s, and gradients of weights as f32", (dtype) => {
    const graph = optimize(mixedPrecision(traced(), { dtype }));
    const nodes = graph.nodes.filter(({ op }) => products.includes(op));
    expect(nodes.length).toBeGreaterThan(5);
    for (const node of nodes)
      expect(graph.nodes[node.inputs[0]!.node]!.specs[node.inputs[0]!.output]!.dtype).toBe(dtype);
    const weightGradients = nodes.filter(
      ({ op, params, specs }) => op === "matmul" && params["resultDtype"] === "f32" && specs[0]!.dtype === "f32",
    );
    expect(weightGradients.map(({ specs }) => specs[0]!.shape)).toEqual(expect.arrayContaining([[4, 3]]));
    expect(nodes.filter(({ op, specs }) => op === "attention" && specs[0]!.dtype === dtype).length).toBe(1);
  });

  test("skips scopes that keep f32", () => {
    const graph = mixedPrecision(
      trace(((x: Tensor) => scope("update", () => matmul(x, x))) as never, [spec(3, 3)] as never).graph,
      {
        keeps: ({ scope: name }) => name.startsWith("update"),
      },
    );
    expect(graph.nodes.map(({ op }) => op)).toEqual(["input", "matmul"]);
  });

  test.each([
    ["f16", 1e-2],
    ["bf16", 8e-2],
  ] as const)("changes values by the rounding of %s only", (dtype, tolerance) => {
    const graph = traced();
    const exact = interpretWorld(graph, [inputsOf(graph)])[0]!;
    const rounded = interpretWorld(mixedPrecision(graph, { dtype }), [inputsOf(graph)])[0]!;
    let [far, differs] = [0, false];
    exact.forEach(({ data }, i) =>
      data.forEach((value, j) => {
        const error = Math.abs(rounded[i]!.data[j]! - value);
        far = Math.max(far, error / (tolerance * Math.abs(value) + tolerance));
        differs ||= error > 0;
      }),
    );
    expect(far).toBeLessThan(1);
    expect(differs).toBe(true);
  });

  test.each(halves)("widening restores the same %s values", (dtype) => {
    const graph = mixedPrecision(traced(), { dtype });
    const wide = widenHalf(graph);
    const halfOperand = (g: Graph): boolean =>
      g.nodes.some(
        ({ op, inputs }) =>
          products.includes(op) && inputs.some((ref) => g.nodes[ref.node]!.specs[ref.output]!.dtype === dtype),
      );
    expect([halfOperand(graph), halfOperand(wide)]).toEqual([true, false]);
    expect(interpretWorld(wide, [inputsOf(graph)])).toEqual(interpretWorld(graph, [inputsOf(graph)]));
    expect(widenHalf(wide)).toBe(wide);
    expect(widenHalf(graph, [dtype === "f16" ? "bf16" : "f16"])).toBe(graph);
  });

  test("a graph whose products are f16 already stays as it is", () => {
    const graph = trace(((x: Tensor) => matmul(cast(x, "f16"), cast(x, "f16"))) as never, [spec(3, 3)] as never).graph;
    const ops = mixedPrecision(graph).nodes.map(({ op }) => op);
    expect(ops).toEqual(graph.nodes.map(({ op }) => op));
  });
});
