import { type Graph, GraphBuilder, type Node, type ValueRef } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";

/** Whether a node must run even if its results are unused. */
export const hasEffect = ({ op, params }: Node): boolean => operators[op]?.hasEffect?.(params) ?? false;

/**
 * Whether each node, by id, is needed for an output, an input or an effect.
 *
 * @param reads values that each node reads. Default: its `inputs`.
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
 * A collective with unused outputs is dropped, too: ranks with equal traces drop the same collectives. If only some
 * ranks use its result, compilation fails (`canonicalOrder`). Nodes that another rank waits for stay.
 *
 * Cost: O(nodes + edges).
 */
export const eliminateDeadCode = (graph: Graph): Graph => {
  const live = liveNodes(graph);
  const builder = new GraphBuilder();
  for (const node of graph.nodes) if (live[node.id]!) builder.copy(node);
  return builder.finish(graph);
};
