import type { Graph } from "../graph/graph.ts";
import { eliminateCommonSubexpressions } from "./common-subexpressions.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { fuseElementwise, type FusionOptions } from "./fusion/fuse-elementwise.ts";
import { recomputeRegions } from "./recompute/recompute-regions.ts";
import { scheduleCollectives } from "./schedule-collectives.ts";
import { simplify, simplifyForFolds } from "./simplify.ts";
import { sinkSlices } from "./sink-slices.ts";

export interface OptimizeOptions {
  /** Whether to wrap elementwise nodes in `fused` nodes; an object sets the limits of a fused node. Default: true. */
  readonly fuse?: boolean | FusionOptions;
  /**
   * Whether to split collectives into start and done; an array is the order in which they start, see
   * `scheduleCollectives`. Default: true.
   */
  readonly schedule?: boolean | readonly number[];
}

// Real graphs reach a fixed point in two or three rounds; stopping earlier only leaves a less simplified graph.
const maxRounds = 8;

const sameStructure = (a: Graph, b: Graph): boolean =>
  a.nodes.length === b.nodes.length &&
  a.nodes.every((node, id) => {
    const other = b.nodes[id]!;
    return (
      node.op === other.op &&
      node.params === other.params &&
      node.inputs.every((ref, i) => ref.node === other.inputs[i]!.node && ref.output === other.inputs[i]!.output)
    );
  });

/**
 * Standard pipeline from a traced graph to one that a backend compiles: simplify, merge equal nodes and drop dead nodes
 * until nothing changes; then recompute the values that checkpoints do not keep; then fuse elementwise nodes; then
 * schedule collectives.
 */
export const optimize = (graph: Graph, { fuse = true, schedule = true }: OptimizeOptions = {}): Graph => {
  let current = graph;
  for (let round = 0; round < maxRounds; round++) {
    const before = current;
    current = eliminateDeadCode(eliminateCommonSubexpressions(simplify(sinkSlices(current))));
    if (sameStructure(before, current)) break;
  }
  // Forward values that only the backward pass read are unused after they are recomputed there.
  if (current.nodes.some(({ region }) => region !== "")) current = eliminateDeadCode(recomputeRegions(current));
  if (typeof fuse === "object" && fuse.maxTile !== undefined) current = simplifyForFolds(current);
  if (fuse !== false) current = fuseElementwise(current, fuse === true ? {} : fuse);
  return schedule === false ? current : scheduleCollectives(current, schedule === true ? undefined : schedule);
};
