import type { Graph } from "../graph/graph.ts";
import { eliminateCommonSubexpressions } from "./common-subexpressions.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { fuseElementwise, type FusionOptions } from "./fusion/fuse-elementwise.ts";
import { recomputeRegions } from "./recompute/recompute-regions.ts";
import { scheduleCollectives } from "./schedule-collectives.ts";
import { simplify, simplifyForFolds } from "./simplify.ts";
import { sinkSlices } from "./sink-slices.ts";

export interface OptimizeOptions {
  /**
   * Whether to fuse elementwise nodes into `fused` nodes. An object enables fusion with the given limits. Default:
   * true.
   */
  readonly fuse?: boolean | FusionOptions;
  /**
   * Whether to split collectives into start and done. An array enables the split with the given start order, see
   * `scheduleCollectives`. Default: true.
   */
  readonly schedule?: boolean | readonly number[];
}

// Maximum number of simplification rounds. Typical graphs reach a fixed point in two or three rounds; the limit affects
// only how far a graph is simplified, not its correctness.
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
 * Runs the standard passes between tracing and compilation: simplifies the graph, merges equal nodes and removes dead
 * nodes until the graph does not change. Then recomputes values inside checkpoints, fuses elementwise nodes, and
 * schedules collectives.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(multiply(x, 2), 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(optimize(graph).nodes.map(({ op }) => op)); // ['input', 'fused']
 * ```
 */
export const optimize = (graph: Graph, { fuse = true, schedule = true }: OptimizeOptions = {}): Graph => {
  let current = graph;
  for (let round = 0; round < maxRounds; round++) {
    const before = current;
    current = eliminateDeadCode(eliminateCommonSubexpressions(simplify(sinkSlices(current))));
    if (sameStructure(before, current)) break;
  }
  // After recomputation, forward values that only the backward pass read are dead.
  if (current.nodes.some(({ region }) => region !== "")) current = eliminateDeadCode(recomputeRegions(current));
  if (typeof fuse === "object" && fuse.maxTile !== undefined) current = simplifyForFolds(current);
  if (fuse !== false) current = fuseElementwise(current, fuse === true ? {} : fuse);
  return schedule === false ? current : scheduleCollectives(current, schedule === true ? undefined : schedule);
};
