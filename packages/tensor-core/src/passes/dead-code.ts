import { type Graph, GraphBuilder, type Node, type ValueRef } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";

/** Whether a node must run even if its results are unused. */
export const hasEffect = ({ op, params }: Node): boolean => operators[op]?.hasEffect?.(params) ?? false;

/**
 * Computes for each node whether it is live: an input, a node with an effect, or a node on which an output or effect
 * depends.
 *
 * @param reads Returns the values that a node reads. Default: its `inputs`.
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
 * Removes nodes on which no output depends. Inputs are kept, so the signature of the graph does not change.
 *
 * Collectives with unused outputs are also removed: ranks with equal traces remove the same collectives. If only some
 * ranks use the result of a collective, compilation fails (`canonicalOrder`). Nodes with `hasEffect` are kept, because
 * another rank waits for these nodes.
 *
 * Cost: O(nodes + edges).
 */
export const eliminateDeadCode = (graph: Graph): Graph => {
  const live = liveNodes(graph);
  const builder = new GraphBuilder();
  for (const node of graph.nodes) if (live[node.id]!) builder.copy(node);
  return builder.finish(graph);
};
