import { type Graph, type Node, type ValueRef, valueKey } from "../../graph/graph.ts";
import { mayRunAgain, recomputeValues } from "./recompute-values.ts";

const depthOf = ({ region }: Node): number => (region === "" ? 0 : region.split("/").length);

/**
 * Returns the path of the outermost `depth` regions around a node; undefined if the node is in fewer than `depth`
 * regions.
 */
const regionAt = (node: Node, depth: number): string | undefined =>
  depthOf(node) < depth ? undefined : node.region.split("/").slice(0, depth).join("/");

/** Recomputes the values of regions at nesting depth `depth` in the backward pass. */
const repeatAt = (graph: Graph, depth: number): Graph => {
  const groups = graph.nodes.map((node) => (mayRunAgain(node) ? regionAt(node, depth) : undefined));
  // Forward values that nodes outside the region read are kept, so they are not recomputed.
  const keptKeys = new Set(graph.outputs.map(valueKey));
  for (const node of graph.nodes) {
    if (node.phase === "backward") continue;
    for (const ref of node.inputs)
      if (groups[ref.node] !== undefined && regionAt(node, depth) !== groups[ref.node]) keptKeys.add(valueKey(ref));
  }
  return recomputeValues(graph, { groups, keeps: (ref: ValueRef) => keptKeys.has(valueKey(ref)) });
};

/**
 * Recomputes the values inside `checkpoint` regions in the backward pass, instead of keeping them. Innermost regions
 * are processed first. If a recomputed inner region reads values of the outer region, these values are then recomputed
 * too.
 *
 * Must run after passes that change how a value is computed (`mixedPrecision`), so that recomputed values are bitwise
 * identical. `optimize` calls this pass. Returns the same graph object if there are no regions. Results do not change.
 *
 * Cost: O(depth · (nodes + edges)).
 */
export const recomputeRegions = (graph: Graph): Graph => {
  let current = graph;
  for (let depth = Math.max(0, ...graph.nodes.map(depthOf)); depth > 0; depth--) current = repeatAt(current, depth);
  return current;
};

/** Clears the `checkpoint` region of all nodes, after the regions were processed. */
export const withoutRegions = (graph: Graph): Graph => ({
  ...graph,
  nodes: graph.nodes.map((node) => ({ ...node, region: "" })),
});
