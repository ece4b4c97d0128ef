import {
  type Graph,
  GraphBuilder,
  keepDefinitions,
  ownOrigin,
  specOf,
  type ValueRef,
  valueKey,
} from "../../graph/graph.ts";
import { inputOperator } from "../../ops/input.ts";

/** Part of a graph that `sliceGraph` extracts as a separate graph. */
export interface GraphSlice {
  /** Values of the original graph that become inputs, in order. Each input may replace several equal values. */
  readonly given: readonly (readonly ValueRef[])[];
  readonly outputs: readonly ValueRef[];
  /** Ids of nodes that must run even if no output depends on them. */
  readonly effects?: readonly number[];
}

/**
 * Finds the nodes needed to compute outputs from given values.
 *
 * @param isGiven Returns whether a value is given, by its `valueKey`.
 */
export const nodesWithin = (
  graph: Graph,
  outputs: readonly ValueRef[],
  isGiven: (key: string, ref: ValueRef) => boolean,
  effects: readonly number[] = [],
): Set<number> => {
  const needed = new Set<number>(effects);
  const stack = [...outputs, ...effects.flatMap((id) => graph.nodes[id]!.inputs)];
  for (let ref = stack.pop(); ref !== undefined; ref = stack.pop()) {
    if (needed.has(ref.node) || isGiven(valueKey(ref), ref)) continue;
    needed.add(ref.node);
    stack.push(...graph.nodes[ref.node]!.inputs);
  }
  return needed;
};

/** Extracts the nodes between given values and outputs as a new graph. Cost: O(nodes + edges). */
export const sliceGraph = (graph: Graph, { given, outputs, effects = [] }: GraphSlice): Graph => {
  const builder = new GraphBuilder();
  const keys = new Set<string>();
  const inputs = given.map((names, index) => {
    const specs = [specOf(graph, names[0]!)];
    const node = builder.add({ op: inputOperator.name, inputs: [], params: { index }, specs, ...ownOrigin });
    for (const name of names) {
      keys.add(valueKey(name));
      builder.map(name, { node, output: 0 });
    }
    return node;
  });
  const needed = nodesWithin(graph, outputs, (key) => keys.has(key), effects);
  for (const id of [...needed].sort((a, b) => a - b)) {
    const node = graph.nodes[id]!;
    const copy = builder.add({ ...node, inputs: node.inputs.map((ref) => builder.resolve(ref)) });
    node.specs.forEach((_, output) => {
      const old = { node: id, output };
      if (!keys.has(valueKey(old))) builder.map(old, { node: copy, output });
    });
  }
  return keepDefinitions(graph, { nodes: builder.nodes, inputs, outputs: outputs.map((ref) => builder.resolve(ref)) });
};
