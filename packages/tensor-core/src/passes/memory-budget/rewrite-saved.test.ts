import { describe, expect, it } from "vitest";
import { checkpoint } from "../../autodiff/checkpoint.ts";
import { valueAndGrad } from "../../autodiff/vjp.ts";
import { gelu } from "../../functions/activation.ts";
import { add, cast, multiply, tanh } from "../../functions/elementwise.ts";
import { matmul } from "../../functions/linear.ts";
import { dequantize, quantize } from "../../functions/quantization.ts";
import { sum } from "../../functions/reduce.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { trace } from "../../tracing/trace.ts";
import { validateGraph } from "../../inspection/validate.ts";
import { planMemory } from "../../memory/memory-plan.ts";
import { interpretWorld } from "../../reference/interpret.ts";
import { elementCount } from "../../shape.ts";
import { optimize } from "../optimize.ts";
import { rewriteSaved, type SavedCode } from "./rewrite-saved.ts";

const width = 16;
const f32 = (...shape: number[]) => ({ dtype: "f32" as const, shape });
const block = (x: Tensor, w: Tensor): Tensor => add(x, tanh(matmul(gelu(matmul(x, w)), w)));

const graphOf = (wrap: (fn: typeof block) => typeof block = (fn) => fn): Graph =>
  trace(
    (weights: Tensor[], x: Tensor) =>
      valueAndGrad((own: Tensor[]) => {
        const end = own.reduce((y, w) => wrap(block)(y, w), x);
        return sum(multiply(end, end));
      })(weights),
    [Array.from({ length: 8 }, () => f32(width, width)), f32(64, width)] as never,
  ).graph;

const bf16: SavedCode = { encode: (x) => [cast(x, "bf16")], decode: ([x]) => cast(x!, "f32") };
const peak = (graph: Graph): number => planMemory(optimize(graph)).workspaceBytes;

const results = (graph: Graph): Float64Array[] => {
  const inputs = graph.inputs.map((id, index) => {
    const spec = graph.nodes[id]!.specs[0]!;
    return {
      spec,
      data: Float64Array.from({ length: elementCount(spec.shape) }, (_, i) => Math.sin(i * 7 + index * 5) / 4),
    };
  });
  return interpretWorld(graph, [inputs])[0]!.map(({ data }) => data);
};

/** Returns the maximum difference of each result, divided by the maximum entry of the result. */
const errors = (a: readonly Float64Array[], b: readonly Float64Array[]): number[] => {
  const most = (data: Float64Array): number => data.reduce((top, value) => Math.max(top, Math.abs(value)), 0);
  return a.map((data, i) => most(data.map((value, j) => value - b[i]![j]!)) / most(data));
};

describe("rewriteSaved", () => {
  const graph = graphOf();

  it("keeps activations in half the bytes: lower peak, equal loss, gradients within rounding", () => {
    const halved = rewriteSaved(bf16)(graph);
    validateGraph(halved);
    expect(peak(halved)).toBeLessThan(0.75 * peak(graph));
    const [loss, ...gradients] = errors(results(graph), results(halved));
    expect(loss).toBe(0);
    for (const error of gradients) {
      expect(error).toBeGreaterThan(0);
      expect(error).toBeLessThan(0.03);
    }
  });

  it("accepts codes of several tensors, and encodes only selected values", () => {
    const blocks: SavedCode = {
      encode: (x) => {
        const { codes, scale } = quantize(x);
        return [codes, scale];
      },
      decode: ([codes, scale], { shape }) => dequantize(codes!, scale!, { count: shape.at(-1)! }),
      selects: ({ shape }) => shape.length === 2,
    };
    const eighth = rewriteSaved(blocks)(graph);
    expect(peak(eighth)).toBeLessThan(0.65 * peak(graph));
    const [loss, ...gradients] = errors(results(graph), results(eighth));
    expect(loss).toBe(0);
    for (const error of gradients) expect(error).toBeLessThan(0.05);
    const none = rewriteSaved({ ...bf16, selects: () => false })(graph);
    expect(errors(results(graph), results(none)).every((error) => error === 0)).toBe(true);
    expect(peak(none)).toBe(peak(graph));
  });

  it("encodes the inputs of checkpoints, and takes less memory than either alone", () => {
    const marked = graphOf((fn) => checkpoint(fn));
    expect(peak(rewriteSaved(bf16)(marked))).toBeLessThan(Math.min(peak(marked), peak(rewriteSaved(bf16)(graph))));
  });

  it("rejects a code that decodes to another shape", () => {
    expect(() => rewriteSaved({ ...bf16, decode: ([x]) => x! })(graph)).toThrow(
      /f32\[64, 16\] was decoded to bf16\[64, 16\]/,
    );
  });
});
