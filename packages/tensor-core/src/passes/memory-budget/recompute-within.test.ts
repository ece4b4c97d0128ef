import { describe, expect, it } from "vitest";
import { valueAndGrad } from "../../autodiff/vjp.ts";
import { gelu } from "../../functions/activation.ts";
import { add, multiply, tanh } from "../../functions/elementwise.ts";
import { matmul } from "../../functions/linear.ts";
import { reshape } from "../../functions/movement.ts";
import { rmsNorm } from "../../functions/normalisation.ts";
import { sum } from "../../functions/reduce.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { trace } from "../../tracing/trace.ts";
import { validateGraph } from "../../inspection/validate.ts";
import { planMemory } from "../../memory/memory-plan.ts";
import { interpretWorld } from "../../reference/interpret.ts";
import { elementCount } from "../../shape.ts";
import { optimize } from "../optimize.ts";
import { recomputeWithin } from "./recompute-within.ts";

const width = 16;
const f32 = (...shape: number[]) => ({ dtype: "f32" as const, shape });
const workspaceBytes = (graph: Graph): number => planMemory(optimize(graph)).workspaceBytes;

/** Returns the training graph of a residual network whose activations need most of the memory. */
const network = (numBlocks: number): Graph =>
  trace(
    (weights: Tensor[], x: Tensor) =>
      valueAndGrad((own: Tensor[]) => {
        const end = own.reduce((y, w) => {
          const h = gelu(matmul(rmsNorm(y, sum(w, { dims: [0] })), w));
          return add(y, reshape(tanh(matmul(reshape(h, [4, 16, width]), w)), [64, width]));
        }, x);
        return sum(multiply(end, end));
      })(weights),
    [Array.from({ length: numBlocks }, () => f32(width, width)), f32(64, width)] as never,
  ).graph;

const numbersOf = (graph: Graph): number[][] => {
  const inputs = graph.inputs.map((id, index) => {
    const spec = graph.nodes[id]!.specs[0]!;
    return {
      spec,
      data: Float64Array.from({ length: elementCount(spec.shape) }, (_, i) => (((i * 7 + index * 5) % 11) - 5) / 16),
    };
  });
  return interpretWorld(graph, [inputs])[0]!.map(({ data }) => [...data]);
};

describe("recomputeWithin", () => {
  const graph = network(5);
  const all = workspaceBytes(graph);

  it.each([0.9, 0.75, 0.6])(
    "keeps the planned workspace within %d of what keeping all takes, with the same bits",
    (share) => {
      const found = recomputeWithin(graph, { maxBytes: share * all, workspaceBytes });
      validateGraph(found.graph);
      expect(workspaceBytes(found.graph)).toBe(found.bytesAfter);
      expect(found.bytesAfter).toBeLessThanOrEqual(share * all);
      expect(found.repeatedFlops).toBeGreaterThan(0);
      expect(numbersOf(found.graph)).toEqual(numbersOf(graph));
    },
  );

  it("repeats more with less memory, and nothing if memory is sufficient", () => {
    const flops = [1, 0.85, 0.6].map(
      (share) => recomputeWithin(graph, { maxBytes: share * all, workspaceBytes }).repeatedFlops,
    );
    expect(flops[0]).toBe(0);
    expect(flops[1]).toBeLessThanOrEqual(flops[2]!);
    expect(recomputeWithin(graph, { maxBytes: all, workspaceBytes }).repeated).toEqual({});
  });

  it("reports the smallest possible limit if a limit cannot be met, and meets that limit", () => {
    let least = 0;
    try {
      recomputeWithin(graph, { maxBytes: 100, workspaceBytes });
    } catch (error) {
      expect((error as Error).message).toMatch(
        /^a step takes \d+ bytes of intermediates, and maxBytes is 100; the least .* is \d+: /,
      );
      expect((error as Error).message).not.toContain("\n");
      least = Number(/take is (\d+)/.exec((error as Error).message)![1]);
    }
    expect(least).toBeGreaterThan(100);
    expect(recomputeWithin(graph, { maxBytes: least, workspaceBytes }).bytesAfter).toBeLessThanOrEqual(least);
  });
});
