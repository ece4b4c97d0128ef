import { describe, expect, it } from "vitest";
import { checkpoint } from "../../autodiff/checkpoint.ts";
import { tap } from "../../autodiff/tap.ts";
import { valueAndGrad } from "../../autodiff/vjp.ts";
import { gelu } from "../../functions/activation.ts";
import { attention } from "../../functions/attention.ts";
import { allReduce } from "../../functions/collective.ts";
import { add, multiply, tanh } from "../../functions/elementwise.ts";
import { matmul } from "../../functions/linear.ts";
import { reshape } from "../../functions/movement.ts";
import { rmsNorm } from "../../functions/normalisation.ts";
import { sum } from "../../functions/reduce.ts";
import { inPhase } from "../../graph/emit.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { trace } from "../../tracing/trace.ts";
import { planMemory } from "../../memory/memory-plan.ts";
import { optimize } from "../optimize.ts";
import { recomputeRegions } from "./recompute-regions.ts";

const f32 = (...shape: number[]) => ({ dtype: "f32" as const, shape });
const width = 16;
type Block = (x: Tensor, w: Tensor) => Tensor;
type Wrap = <F extends (...args: never[]) => unknown>(fn: F) => F;
const plain: Wrap = (fn) => fn;
const again: Wrap = (fn) => checkpoint(fn as never) as never;

/** Returns the training graph of a sequence of blocks. Each checkpoint contains `perPart` blocks. */
const deep = (block: Block, numBlocks: number, wrap: Wrap, perPart = 1): Graph =>
  trace(
    (weights: Tensor[], x: Tensor) =>
      valueAndGrad((own: Tensor[]) => {
        let current = x;
        for (let begin = 0; begin < numBlocks; begin += perPart)
          current = wrap((y: Tensor) => own.slice(begin, begin + perPart).reduce((z, w) => block(z, w), y))(current);
        return sum(multiply(current, current));
      })(weights),
    [Array.from({ length: numBlocks }, () => f32(width, width)), f32(64, width)] as never,
    { mesh: { model: 2 } },
  ).graph;

const dense: Block = (x, w) => tanh(matmul(gelu(matmul(tanh(x), w)), w));
const transformer: Block = (x, w) => {
  const gain = sum(w, { dims: [0] });
  const heads = reshape(matmul(rmsNorm(x, gain), w), [1, 4, 64, 4]);
  const y = add(x, reshape(attention(heads, heads, heads, { causal: true }), [64, width]));
  return add(y, matmul(gelu(matmul(rmsNorm(y, gain), w)), w));
};
const parallel: Block = (x, w) => tanh(allReduce(matmul(gelu(matmul(x, w)), w), "model"));
const peak = (graph: Graph): number => planMemory(optimize(graph)).workspaceBytes;

describe("recomputeRegions", () => {
  it.each([
    ["a deep perceptron", dense, 0.6],
    ["a deep transformer", transformer, 0.5],
    ["layers that communicate in forward, under the schedule of collectives", parallel, 0.8],
  ] as const)("lowers the peak of %s", (_, block, share) => {
    const most = share * peak(deep(block, 12, plain));
    expect(peak(deep(block, 12, again))).toBeLessThan(most);
    // Later passes that merge equal nodes do not undo the recomputation.
    const repeated = recomputeRegions(deep(block, 12, again));
    expect(peak({ ...repeated, nodes: repeated.nodes.map((node) => ({ ...node, region: "" })) })).toBeLessThan(most);
  });

  it("keeps even less with nested checkpoints", () => {
    const nested = deep((x, w) => checkpoint(transformer)(x, w), 16, again, 4);
    expect(peak(nested)).toBeLessThan(peak(deep(transformer, 16, again)));
    expect(peak(nested)).toBeLessThan(peak(deep(transformer, 16, again, 4)));
    // Number of matrix products per block: three in the forward pass, three more for each enclosing checkpoint, and six
    // gradient products in the backward pass.
    const products = (graph: Graph): number => optimize(graph).nodes.filter(({ op }) => op === "matmul").length;
    const [once, twice] = [products(deep(transformer, 16, plain)), products(nested)];
    expect(twice).toBeGreaterThan(once);
    expect(twice).toBeLessThanOrEqual(once + 2 * 3 * 16);
  });

  it("marks what it repeats as backward, behind a barrier that waits for a cotangent", () => {
    const graph = recomputeRegions(deep(dense, 3, again));
    const copies = graph.nodes.filter(({ op, phase }) => op === "gelu" && phase === "backward");
    expect(copies).toHaveLength(3);
    const barriers = graph.nodes.filter(({ op }) => op === "optimization-barrier");
    for (const { inputs, phase } of barriers) {
      expect(phase).toBe("backward");
      expect(graph.nodes[inputs.at(-1)!.node]!.phase).toBe("backward");
    }
  });

  it("returns the same graph without checkpoints, and does not change a forward pass", () => {
    const graph = deep(dense, 2, plain);
    expect(recomputeRegions(graph)).toBe(graph);
    const forward = trace((x: Tensor) => checkpoint(tanh)(tanh(x)), [f32(4)] as never).graph;
    expect(recomputeRegions(forward).nodes).toEqual(forward.nodes);
  });

  it("repeats values that a statistic of the backward pass reads, and keeps values that the update reads", () => {
    const count = (phase: "backward" | "update"): number => {
      const { graph } = trace(
        (w: Tensor, x: Tensor) => {
          const { value, taps, grads } = valueAndGrad(
            (own: Tensor) => sum(checkpoint((y: Tensor) => tanh(matmul(tap("h", tanh(matmul(y, own))), own)))(x)),
            { taps: true },
          )(w);
          return [value, grads, inPhase(phase, () => sum(multiply(taps["h"]!.value, 3)))];
        },
        [f32(width, width), f32(4, width)] as never,
      );
      return optimize(graph, { fuse: false }).nodes.filter(({ op }) => op === "tanh").length;
    };
    // The forward pass has two `tanh` nodes. The backward pass repeats the tapped value, unless the update reads the
    // value, which is then kept.
    expect([count("backward"), count("update")]).toEqual([3, 2]);
  });
});
