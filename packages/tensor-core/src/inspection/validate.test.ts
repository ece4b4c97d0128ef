import { describe, expect, it } from "vitest";
import { add } from "../functions/elementwise.ts";
import { allReduce } from "../functions/collective.ts";
import { InvariantError, OperatorError } from "../errors.ts";
import { scheduleCollectives } from "../passes/schedule-collectives.ts";
import type { Graph, Node } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { validateGraph } from "./validate.ts";

const vector = { dtype: "f32", shape: [4] } as unknown as Tensor;
const { graph } = trace((x: Tensor, y: Tensor) => add(add(x, y), y), [vector, vector]);
const split = scheduleCollectives(
  trace((x: Tensor) => add(allReduce(x, "data"), x), [vector], { mesh: { data: 2 } }).graph,
);

/** Returns a copy of a graph with one node changed. */
const altered = (from: Graph, id: number, change: Partial<Node>): Graph => ({
  ...from,
  nodes: from.nodes.map((node) => (node.id === id ? { ...node, ...change } : node)),
});

const broken: { readonly [what: string]: readonly [Graph, RegExp] } = {
  "an id that is not the position": [altered(graph, 2, { id: 7 }), /node 7 \(add\) is at position 2/],
  "a later operand": [
    altered(graph, 2, {
      inputs: [
        { node: 0, output: 0 },
        { node: 3, output: 0 },
      ],
    }),
    /node 2 \(add\) reads value 3:0, which no earlier node computes/,
  ],
  "an output that its node lacks": [
    altered(graph, 3, {
      inputs: [
        { node: 2, output: 1 },
        { node: 1, output: 0 },
      ],
    }),
    /reads value 2:1/,
  ],
  "a wrong shape": [
    altered(graph, 2, { specs: [{ dtype: "f32", shape: [5] }] }),
    /states the results f32\[5\], but its operator infers f32\[4\]/,
  ],
  "operands that do not fit": [
    altered(graph, 0, { specs: [{ dtype: "i32", shape: [4] }] }),
    /node 2 \(add\) does not accept i32\[4\], f32\[4\]/,
  ],
  "an input that is not listed": [{ ...graph, inputs: [0] }, /node 1 \(input\) is missing/],
  "an input listed twice": [{ ...graph, inputs: [0, 1, 1] }, /name a node twice/],
  "a listed input that computes": [{ ...graph, inputs: [0, 2] }, /graph input 2 is not a node with op "input"/],
  "a result that nobody computes": [{ ...graph, outputs: [{ node: 9, output: 0 }] }, /returns value 9:0/],
  "a collective used before it is done": [
    altered(split, 3, {
      inputs: [
        { node: 1, output: 0 },
        { node: 0, output: 0 },
      ],
    }),
    /node 3 \(add\) reads value 1:0 of a collective that may still be in progress/,
  ],
  "a collective that nobody waits for": [altered(split, 2, { op: "identity" }), /in progress|waited for 0 times/],
  "a result that may still be under way": [{ ...split, outputs: [{ node: 1, output: 0 }] }, /returns value 1:0/],
};

describe("validateGraph", () => {
  it("accepts the graphs of trace and the passes", () => {
    validateGraph(graph);
    validateGraph(split);
  });

  it.each(Object.entries(broken))("finds %s", (_, [wrong, message]) => {
    expect(() => validateGraph(wrong)).toThrow(InvariantError);
    expect(() => validateGraph(wrong)).toThrow(message);
  });

  it("reports an undefined operator as a user error", () => {
    const unknown = altered(graph, 3, { op: "matmull", scope: "model" });
    expect(() => validateGraph(unknown)).toThrow(OperatorError);
    expect(() => validateGraph(unknown)).toThrow(/matmull: this operator is not defined; did you mean "matmul"\?/);
  });
});
