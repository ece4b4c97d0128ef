import { describe, expect, test } from "vitest";
import { InvariantError } from "../errors.ts";
import { cast } from "../functions/elementwise.ts";
import { matmul } from "../functions/linear.ts";
import { reshape, transpose } from "../functions/movement.ts";
import type { Graph } from "../graph/graph.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { optimize } from "./optimize.ts";
import { rewriteGraph } from "./rewrite.ts";
import { simplify } from "./simplify.ts";

const halves = { dtype: "f16", shape: [3, 3] } as unknown as Tensor;

describe("rewriteGraph", () => {
  const { graph } = trace((x: Tensor) => reshape(x, [9]), [halves]);

  test("rejects a rule that changes the dtype or the shape of a value, and names both", () => {
    const narrowed: RewriteRule = ({ inputs }) => inputs[0]!;
    expect(() => rewriteGraph(graph, { reshape: [narrowed] })).toThrow(InvariantError);
    expect(() => rewriteGraph(graph, { reshape: [narrowed] })).toThrow(
      /rule narrowed replaced reshape of f16\[9\] by f16\[3, 3\]/,
    );
    const widened: RewriteRule = ({ inputs, params }, { emit }) =>
      emit("cast", [emit("cast", inputs, { dtype: "f32" })], { ...params, dtype: "f32" });
    expect(() => rewriteGraph(graph, { reshape: [widened] })).toThrow(/by f32\[3, 3\]/);
  });

  test("rejects a rule that emits its own operator with new params", () => {
    const rebuilt: RewriteRule = ({ inputs, params }, { emit }) => emit("reshape", inputs, params);
    expect(() => rewriteGraph(graph, { reshape: [rebuilt] })).toThrow(
      /a rule for reshape emitted reshape.*use derive\(\)/,
    );
  });

  test("a derived node has all params of its source, except for the changes", () => {
    const marked: Graph = {
      ...graph,
      nodes: graph.nodes.map((node) => ({ ...node, params: { ...node.params, mark: 7, other: 8 } })),
    };
    const once: RewriteRule = (node, { derive }) =>
      node.params["other"] === 8 ? derive(node, node.inputs, { other: 9 }) : undefined;
    expect(rewriteGraph(marked, { reshape: [once] }).nodes.at(-1)!.params).toEqual({ shape: [9], mark: 7, other: 9 });
  });
});

describe("rules", () => {
  test.each(["f16", "f32"] as const)("a product of transposed f16 operands keeps its result in %s", (resultDtype) => {
    for (const fn of [
      (a: Tensor) => matmul(transpose(a), a, { resultDtype }),
      (a: Tensor) => matmul(a, transpose(a), { resultDtype }),
      (a: Tensor) => matmul(transpose(a), transpose(a), { resultDtype, transposeB: true }),
    ])
      for (const pass of [simplify, optimize]) {
        const after = pass(trace(fn, [halves]).graph);
        const product = after.nodes.find(({ op }) => op === "matmul")!;
        expect(product.params["resultDtype"]).toBe(resultDtype);
        expect(product.specs[0]!.dtype).toBe(resultDtype);
        expect(product.inputs.every(({ node }) => after.nodes[node]!.op === "input")).toBe(true);
      }
  });

  test("a cast between a transpose and its product stays", () => {
    const { graph } = trace((a: Tensor) => matmul(cast(transpose(a), "f32"), cast(a, "f32")), [halves]);
    expect(simplify(graph).nodes.filter(({ op }) => op === "cast")).toHaveLength(2);
  });
});
