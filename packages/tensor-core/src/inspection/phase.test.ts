import { expect, test } from "vitest";
import { adam, applyUpdates } from "../index.ts";
import { valueAndGrad } from "../autodiff/vjp.ts";
import { allReduce } from "../functions/collective.ts";
import { multiply, sin } from "../functions/elementwise.ts";
import { sum } from "../functions/reduce.ts";
import { optimize } from "../passes/optimize.ts";
import { inPhase, scope } from "../graph/emit.ts";
import { modelScope, phaseOf } from "./phase.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { replay } from "../tracing/replay.ts";

const spec = { dtype: "f32" as const, shape: [4] };

const step = trace(
  (w: Tensor, state: unknown) => {
    const [loss, gradient] = valueAndGrad((own: Tensor) =>
      scope("model", () => sum(allReduce(sin(multiply(own, own)), "model"))),
    )(w);
    const mean = inPhase("communication", () => multiply(allReduce(gradient, "data"), 0.5));
    const optimizer = adam({ learningRate: 0.1 });
    const [updates, next] = optimizer.update(mean, state as never, { params: w });
    return [loss, applyUpdates(w, updates), next];
  },
  [
    spec,
    [{ step: { dtype: "i32", shape: [] }, mean: spec, square: spec }, { step: { dtype: "i32", shape: [] } }],
  ] as never,
  { mesh: { data: 2, model: 2 } },
);

const phasesOf = (op: string): string[] => [
  ...new Set(step.graph.nodes.filter((node) => node.op === op).map(({ phase }) => phase)),
];

test("nodes record the phase in which they were emitted", () => {
  expect(phasesOf("sin")).toEqual(["forward"]);
  expect(phasesOf("all-reduce")).toEqual(["forward", "backward", "communication"]);
  expect(phasesOf("sqrt")).toEqual(["update"]);
  expect(step.graph.nodes.at(-1)!.phase).toBe("update");
});

test("a collective is communication in every phase, its neighbors are not", () => {
  const [first, node] = [
    step.graph.nodes.find(({ op }) => op === "all-reduce")!,
    step.graph.nodes.find(({ op }) => op === "sin")!,
  ];
  expect([first.phase, phaseOf(first), phaseOf(node)]).toEqual(["forward", "communication", "forward"]);
});

test("passes and replays keep phases; a fused node has the last phase of its members", () => {
  const after = optimize(step.graph, { schedule: false }).nodes;
  expect(after.filter(({ op }) => op === "all-reduce").map(({ phase }) => phase)).toEqual([
    "forward",
    "backward",
    "communication",
  ]);
  expect([...new Set(after.filter(({ op }) => op === "fused").map(({ phase }) => phase))]).toEqual([
    "forward",
    "backward",
    "update",
  ]);
  const again = trace(
    (...inputs: Tensor[]) => replay(step.graph, inputs),
    step.graph.inputs.map((id) => step.graph.nodes[id]!.specs[0]!) as never,
    {
      mesh: { data: 2, model: 2 },
    },
  );
  expect(again.graph.nodes.map(({ phase }) => phase)).toEqual(step.graph.nodes.map(({ phase }) => phase));
});

test("a phase has one of four names", () => {
  expect(() => trace((x: Tensor) => inPhase("sideways" as never, () => x), [spec as never])).toThrow(
    /"sideways"; use one of forward, backward, communication, update/,
  );
});

test.each([
  ["block-0/attention", "block-0/attention"],
  ["block-0/attention/backward", "block-0/attention"],
  ["backward", ""],
  ["backward-looking", "backward-looking"],
  ["attend/backward/inner", "attend/inner"],
])("%j names the part %j of a model", (path, model) => {
  expect(modelScope(path)).toBe(model);
});
