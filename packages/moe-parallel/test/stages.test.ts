import { type Graph, NdArray, sum, type Tensor, trace, valueAndGrad } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import {
  capacityByMaximum,
  denseDispatcher,
  duplicateFreeDispatcher,
  geluExperts,
  hierarchicalDispatcher,
  moeLayer,
  raggedDispatcher,
  softGate,
  switchGate,
  type TokenDispatcher,
} from "../src/index.ts";
import { keyOf } from "./tokens.ts";

const [width, numExperts] = [3, 8];
const mesh = { expert: 4, hosts: 2, inside: 2 };
const axes = ["hosts", "inside"];

/** Returns the graph of a layer on four ranks: forward only, or with gradients. */
const graphOf = (
  dispatcher: TokenDispatcher,
  {
    chunks = 1,
    gradients = false,
    gate = switchGate({ width, numExperts, numChoices: 2 }) as Parameters<typeof moeLayer>[0]["gate"],
  } = {},
): Graph => {
  const layer = moeLayer<unknown, unknown, unknown>({
    gate,
    experts: geluExperts({ width, hidden: 4 }) as never,
    capacity: capacityByMaximum(),
    dispatcher,
    chunks,
    tokenAxes: [],
  });
  const forward = (key: Tensor, x: Tensor): Tensor => {
    const { params, state } = layer.init(key);
    const loss = (own: typeof params): Tensor => sum(layer.apply(own, state, x, { train: true })[0]);
    return gradients ? (valueAndGrad(loss)(params) as never) : loss(params);
  };
  return trace(forward, [keyOf(1), NdArray.from(new Array(24).fill(1), [8, width])], { mesh }).graph;
};

const collectives = ({ nodes }: Graph): Graph["nodes"] => nodes.filter(({ op }) => op === "ragged-all-to-all");
const exchanges = ({ nodes }: Graph): Graph["nodes"] => nodes.filter(({ op }) => op.endsWith("all-to-all"));
const axesIn = (graph: Graph): unknown[] => collectives(graph).map(({ params }) => params["axis"]);

describe.each([
  ["dense", denseDispatcher()],
  ["ragged", raggedDispatcher()],
  ["hierarchical", hierarchicalDispatcher({ axes })],
  ["duplicate-free", duplicateFreeDispatcher({ axes })],
])("%s", (_name, dispatcher: TokenDispatcher) => {
  test.each([1, 2])("names its stages by disjoint scopes (%i chunks)", (chunks) => {
    for (const gate of [switchGate({ width, numExperts, numChoices: 2 }), softGate({ width, numExperts })]) {
      const { nodes } = graphOf(dispatcher, { chunks, gate: gate as never });
      const stages = new Set(nodes.map(({ scope }) => scope).filter((scope) => scope !== ""));
      expect([...stages].toSorted()).toEqual(["combine", "dispatch", "experts", "gate", "inverse-order", "order"]);
      const moving = nodes.filter(({ op }) => /all-to-all|all-gather/.test(op)).map(({ scope }) => scope);
      expect(new Set(moving)).toEqual(new Set(["dispatch", "combine"]));
      const ordering = nodes.filter(({ op }) => /^gather|scatter-add|sort/.test(op)).map(({ scope }) => scope);
      expect(ordering).not.toContain("experts");
    }
  });
});

test("all chunks pass a level before any passes the next, and return in reverse order", () => {
  const times = (count: number, axis: string): string[] => Array.from({ length: count }, () => axis);
  // Per chunk and level: tokens and targets in dispatch, tokens in combine.
  expect(axesIn(graphOf(duplicateFreeDispatcher({ axes }), { chunks: 2 }))).toEqual([
    ...times(4, "hosts"),
    ...times(4, "inside"),
    ...times(2, "inside"),
    ...times(2, "hosts"),
  ]);
  expect(axesIn(graphOf(hierarchicalDispatcher({ axes }), { chunks: 2 }))).toEqual([
    ...times(4, "inside"),
    ...times(4, "hosts"),
    ...times(2, "hosts"),
    ...times(2, "inside"),
  ]);
});

test("collectives of each axis have their own priority, gradients too", () => {
  const lanes = (dispatcher: TokenDispatcher): string[] => [
    ...new Set(
      exchanges(graphOf(dispatcher, { gradients: true })).map(
        ({ params }) => `${String(params["axis"])} ${String(params["priority"])}`,
      ),
    ),
  ];
  expect(lanes(duplicateFreeDispatcher({ axes }))).toEqual(["hosts 3", "inside 2"]);
  expect(lanes(hierarchicalDispatcher({ axes, priorities: [0, 1] }))).toEqual(["inside 1", "hosts 0"]);
  expect(lanes(denseDispatcher())).toEqual(["expert 3"]);
  expect(lanes(raggedDispatcher())).toEqual(["expert 3"]);
  expect(lanes(denseDispatcher({ priority: 1 }))).toEqual(["expert 1"]);
  expect(lanes(raggedDispatcher({ priority: 0 }))).toEqual(["expert 0"]);
  for (const dispatcher of [denseDispatcher, raggedDispatcher])
    expect(() => dispatcher({ priority: 4 })).toThrow(/Dispatcher: priority is 4; use 0 to 3, the highest goes/);
});
