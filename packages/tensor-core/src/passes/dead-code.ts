import { type Graph, GraphBuilder, type Node, type ValueRef } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";

/** Whether a node must run even where nobody reads its results. */
export const hasEffect = ({ op, params }: Node): boolean => operators[op]?.hasEffect?.(params) ?? false;

/**
 * Which nodes outputs, inputs and effects depend on, by id.
 *
 * @param reads per node, the values that it takes; its `inputs` by default.
 */
export const liveNodes = (
  graph: Graph,
  reads: readonly (readonly ValueRef[])[] = graph.nodes.map((node) => node.inputs),
): boolean[] => {
  const live = new Array<boolean>(graph.nodes.length).fill(false);
  for (const id of graph.inputs) live[id] = true;
  for (const ref of graph.outputs) live[ref.node] = true;
  for (const node of graph.nodes.toReversed()) {
    if (hasEffect(node)) live[node.id] = true;
    if (live[node.id]!) for (const ref of reads[node.id]!) live[ref.node] = true;
  }
  return live;
};

/**
 * Drop every node that no output depends on. Inputs stay, so the signature of the graph does not change.
 *
 * A collective whose outputs nobody reads is dropped too: what all ranks trace alike, all drop alike. Ranks of which
 * only some read it are refused when they compile (`canonicalOrder`). What another rank waits for stays.
 *
 * Cost: O(nodes + edges).
 */
export const eliminateDeadCode = (graph: Graph): Graph => {
  const live = liveNodes(graph);
  const builder = new GraphBuilder();
  for (const node of graph.nodes) if (live[node.id]!) builder.copy(node);
  return builder.finish(graph);
};
