import type { Graph } from "../graph/graph.ts";
import { eliminateCommonSubexpressions } from "./common-subexpressions.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { fuseElementwise, type FusionOptions } from "./fusion/fuse-elementwise.ts";
import { recomputeRegions } from "./recompute/recompute-regions.ts";
import { scheduleCollectives } from "./schedule-collectives.ts";
import { simplify, simplifyForFolds } from "./simplify.ts";
import { sinkSlices } from "./sink-slices.ts";

export interface OptimizeOptions {
  /** Wrap elementwise nodes in `fused` nodes. Default true; an object sets the bounds of a fused node. */
  readonly fuse?: boolean | FusionOptions;
  /**
   * Split collectives into start and done. Default true; an array is the order in which they start, see
   * `scheduleCollectives`.
   */
  readonly schedule?: boolean | readonly number[];
}

// Real graphs settle in two or three rounds; what is left after these is only less tidy.
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
 * The standard pipeline from a traced graph to one that a backend compiles: simplify, merge equal nodes and drop dead
 * ones until nothing changes, then repeat what checkpoints do not keep, then fuse elementwise nodes, then schedule
 * collectives.
 */
export const optimize = (graph: Graph, { fuse = true, schedule = true }: OptimizeOptions = {}): Graph => {
  let current = graph;
  for (let round = 0; round < maxRounds; round++) {
    const before = current;
    current = eliminateDeadCode(eliminateCommonSubexpressions(simplify(sinkSlices(current))));
    if (sameStructure(before, current)) break;
  }
  // What only backward read of forward has lost its readers where it is repeated.
  if (current.nodes.some(({ region }) => region !== "")) current = eliminateDeadCode(recomputeRegions(current));
  if (typeof fuse === "object" && fuse.maxTile !== undefined) current = simplifyForFolds(current);
  if (fuse !== false) current = fuseElementwise(current, fuse === true ? {} : fuse);
  return schedule === false ? current : scheduleCollectives(current, schedule === true ? undefined : schedule);
};
