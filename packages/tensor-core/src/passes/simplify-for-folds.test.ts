import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maximum, negate } from "../functions/elementwise.ts";
import { reduceMax, reduceMin } from "../functions/reduce.ts";
import type { Graph } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { validateGraph } from "../inspection/validate.ts";
import { interpretWorld } from "../reference/interpret.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { simplifyForFolds } from "./simplify.ts";

const tensor = (...shape: number[]): Tensor => ({ dtype: "f32", shape }) as unknown as Tensor;
const along = { dims: -1, keepDims: true };

const rewrite = (fn: (x: Tensor) => Tensor, x: Tensor): Graph => {
  const graph = eliminateDeadCode(simplifyForFolds(trace(fn, [x]).graph));
  validateGraph(graph);
  return graph;
};
const opsOf = (graph: Graph): string[] =>
  graph.nodes.map(({ op }) => op).filter((op) => op !== "input" && op !== "reshape");

describe("simplifyForFolds", () => {
  const shape = [3, 5];
  const ends = (x: Tensor): Tensor => maximum(reduceMax(x, along), negate(reduceMin(x, along)));

  it("keeps every bit, of NaN, infinities and zeros as well", () => {
    const number = fc.oneof(fc.float(), fc.constantFrom(0, -0, NaN, Infinity, -Infinity));
    const before = trace(ends, [tensor(...shape)]).graph;
    const after = rewrite(ends, tensor(...shape));
    expect(opsOf(after)).toEqual(["absolute", "reduce-max"]);
    fc.assert(
      fc.property(fc.array(number, { minLength: 15, maxLength: 15 }), (values) => {
        const inputs = [[{ spec: { dtype: "f32" as const, shape }, data: Float64Array.from(values) }]];
        expect(interpretWorld(after, inputs)).toEqual(interpretWorld(before, inputs));
      }),
    );
  });

  it("takes either order, and all dimensions", () => {
    expect(opsOf(rewrite((x) => maximum(negate(reduceMin(x)), reduceMax(x)), tensor(7)))).toEqual([
      "absolute",
      "reduce-max",
    ]);
  });

  it("keeps similar nodes unchanged", () => {
    const others: readonly ((x: Tensor) => Tensor)[] = [
      (x) => maximum(reduceMax(x), reduceMin(x)),
      (x) => maximum(negate(reduceMax(x)), negate(reduceMin(x))),
      (x) => maximum(reduceMax(x), negate(negate(reduceMin(x)))),
      (x) => maximum(reduceMax(x, { dims: 0 }), negate(reduceMin(x, { dims: 1 }))),
      (x) => maximum(reduceMax(x), negate(reduceMin(negate(x)))),
    ];
    for (const fn of others) expect(opsOf(rewrite(fn, tensor(5, 5)))).not.toContain("absolute");
  });
});
