import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  add,
  type Graph,
  multiply,
  optimizationBarrier,
  printGraph,
  sum,
  tanh,
  type Tensor,
  trace,
  valueAndGrad,
} from "../src/index.ts";
import {
  eliminateCommonSubexpressions,
  eliminateDeadCode,
  expandCompositions,
  formatSpec,
  type FusedParams,
  fuseElementwise,
  interpretWorld,
  type Node,
  optimize,
  planMemory,
  simplify,
  specOf,
  validateGraph,
} from "../src/backend.ts";
import { scheduleCollectives } from "../src/passes/schedule-collectives.ts";
import { simplifyForFolds } from "../src/passes/simplify.ts";
import { sinkSlices } from "../src/passes/sink-slices.ts";
import { buildGraph, graphRecipe, inputsFor } from "./random-graph.ts";

const passes: { readonly [name: string]: (graph: Graph) => Graph } = {
  eliminateCommonSubexpressions,
  eliminateDeadCode,
  fuseElementwise: (graph) => fuseElementwise(graph),
  "fuseElementwise, tight bounds": (graph) => fuseElementwise(graph, { maxRegisters: 5, maxOperands: 4 }),
  "fuseElementwise with folds": (graph) => fuseElementwise(graph, { maxTile: 1024 }),
  "fuseElementwise with folds in tiles of 4": (graph) => fuseElementwise(graph, { maxTile: 4 }),
  scheduleCollectives,
  simplify,
  sinkSlices,
  optimize: (graph) => optimize(graph),
};

// Evaluate a graph. Values are multiples of small powers of two, so results of exact passes are bitwise identical,
// except that -0 is converted to 0, see `simplify`.
const numbersOf = (graph: Graph): number[][] =>
  interpretWorld(graph, inputsFor(graph)).flatMap((rank) =>
    rank.map(({ data }) => [...data].map((value) => (value === 0 ? 0 : value))),
  );

const expand = (graph: Graph): Graph => expandCompositions(graph, () => false);

describe.each([...Object.entries(passes), ["expandCompositions", expand] as const])("%s", (_, pass) => {
  it("keeps the graph valid, its signature, and what it computes on every rank", () => {
    fc.assert(
      fc.property(graphRecipe(), (recipe) => {
        const before = buildGraph(recipe);
        validateGraph(before);
        const after = pass(before);
        validateGraph(after);
        expect(after.inputs.map((id) => after.nodes[id]!.specs)).toEqual(
          before.inputs.map((id) => before.nodes[id]!.specs),
        );
        expect(after.outputs.map((ref) => formatSpec(specOf(after, ref)))).toEqual(
          before.outputs.map((ref) => formatSpec(specOf(before, ref))),
        );
        expect(numbersOf(after), printGraph(after)).toEqual(numbersOf(before));
      }),
      { numRuns: 300 },
    );
  });
});

// Operators that rules and passes may create without copying the parameters of a source node.
const madeAnew: ReadonlySet<string> = new Set([
  "absolute",
  "broadcast-to",
  "collective-done",
  "concat",
  "constant",
  "fused",
  "negate",
  "reshape",
]);

/** Returns the operators whose parameters do not have the test mark, including operators inside fused nodes. */
const unmarked = ({ op, params }: Pick<Node, "op" | "params">): string[] => [
  ...(params["mark"] === "kept" || madeAnew.has(op) ? [] : [op]),
  ...(op === "fused" ? (params as unknown as FusedParams).instructions.flatMap(unmarked) : []),
];

describe.each([...Object.entries(passes), ["simplifyForFolds", simplifyForFolds] as const])("%s", (_, pass) => {
  it("keeps unknown params", () => {
    fc.assert(
      fc.property(graphRecipe(), (recipe) => {
        const source = buildGraph(recipe);
        const marked = {
          ...source,
          nodes: source.nodes.map((node) => ({ ...node, params: { ...node.params, mark: "kept" } })),
        };
        expect(pass(marked).nodes.flatMap(unmarked), printGraph(source)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

describe("optimization barriers", () => {
  const barriersOf = (graph: Graph): Node[] => graph.nodes.filter(({ op }) => op === "optimization-barrier");

  it.each([
    ["eliminateCommonSubexpressions", eliminateCommonSubexpressions],
    ["fuseElementwise", (graph: Graph) => fuseElementwise(graph)],
    ["sinkSlices", sinkSlices],
    ["scheduleCollectives", scheduleCollectives],
  ] as const)("%s leaves each as it is, with all of its operands", (_, pass) => {
    fc.assert(
      fc.property(graphRecipe(), (recipe) => {
        const before = eliminateDeadCode(buildGraph(recipe));
        const sizes = (graph: Graph): number[] => barriersOf(graph).map(({ inputs }) => inputs.length);
        expect(sizes(pass(before)), printGraph(before)).toEqual(sizes(before));
      }),
    );
  });

  it("does not merge equal computations on two sides", () => {
    const { graph } = trace(
      (x: Tensor) => {
        const [again] = optimizationBarrier(x);
        const [more] = optimizationBarrier(x);
        return add(add(tanh(multiply(x, 2)), tanh(multiply(again!, 2))), tanh(multiply(more!, 2)));
      },
      [{ dtype: "f32", shape: [8] } as never],
    );
    const count = (pass: (source: Graph) => Graph): number => {
      const instructions = pass(graph).nodes.flatMap(({ op, params }) =>
        op === "fused" ? (params as unknown as FusedParams).instructions.map((one) => one.op) : [op],
      );
      return instructions.filter((op) => op === "tanh").length;
    };
    for (const pass of Object.values(passes)) expect(count(pass)).toBe(3);
    expect(planMemory(optimize(graph)).settled.size).toBe(2);
  });

  it("is a barrier for cotangents, too", () => {
    const { graph } = trace(
      (x: Tensor) => valueAndGrad((own: Tensor) => sum(tanh(optimizationBarrier(own)[0]!)))(x)[1],
      [{ dtype: "f32", shape: [3] } as never],
    );
    expect(barriersOf(optimize(graph)).map(({ phase }) => phase)).toEqual(["forward", "backward"]);
    const data = interpretWorld(graph, [[{ spec: graph.nodes[0]!.specs[0]!, data: Float64Array.of(0, 1, -2) }]])[0]![0]!
      .data;
    expect([...data]).toEqual([0, 1, -2].map((x) => 1 - Math.tanh(x) ** 2));
  });
});

describe("optimize", () => {
  it("leaves no elementwise node outside a fused node, and no collective unsplit", () => {
    fc.assert(
      fc.property(graphRecipe(), (recipe) => {
        const loose = optimize(buildGraph(recipe)).nodes.filter(({ op }) =>
          [
            "add",
            "cast",
            "multiply",
            "where",
            "relu",
            "all-reduce",
            "all-gather",
            "identity",
            "stop-gradient",
          ].includes(op),
        );
        expect(loose).toEqual([]);
      }),
    );
  });
});
