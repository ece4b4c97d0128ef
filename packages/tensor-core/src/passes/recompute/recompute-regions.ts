import { type Graph, type Node, type ValueRef, valueKey } from "../../graph/graph.ts";
import { mayRunAgain, recomputeValues } from "./recompute-values.ts";

const depthOf = ({ region }: Node): number => (region === "" ? 0 : region.split("/").length);

/** The first `depth` of the regions around a node, if it is in so many. */
const regionAt = (node: Node, depth: number): string | undefined =>
  depthOf(node) < depth ? undefined : node.region.split("/").slice(0, depth).join("/");

/** Repeat what backward reads of the regions that are nested so deep. */
const repeatAt = (graph: Graph, depth: number): Graph => {
  const groups = graph.nodes.map((node) => (mayRunAgain(node) ? regionAt(node, depth) : undefined));
  // What leaves a region in the forward pass is there anyhow.
  const kept = new Set(graph.outputs.map(valueKey));
  for (const node of graph.nodes) {
    if (node.phase === "backward") continue;
    for (const ref of node.inputs)
      if (groups[ref.node] !== undefined && regionAt(node, depth) !== groups[ref.node]) kept.add(valueKey(ref));
  }
  return recomputeValues(graph, { groups, keeps: (ref: ValueRef) => kept.has(valueKey(ref)) });
};

/**
 * Compute again in backward what `checkpoint` has marked, instead of keeping it. Innermost regions come first: what a
 * repeated inner region reads of the outer one is then repeated in turn.
 *
 * Comes after passes that change how a value is computed (`mixedPrecision`), so that what is repeated has the same
 * bits. `optimize` runs it. Returns the graph itself where nothing is marked. Exact.
 *
 * Cost: O(depth · (nodes + edges)).
 */
export const recomputeRegions = (graph: Graph): Graph => {
  let current = graph;
  for (let depth = Math.max(0, ...graph.nodes.map(depthOf)); depth > 0; depth--) current = repeatAt(current, depth);
  return current;
};

/** A graph whose marks have been seen to. */
export const withoutRegions = (graph: Graph): Graph => ({
  ...graph,
  nodes: graph.nodes.map((node) => ({ ...node, region: "" })),
});
