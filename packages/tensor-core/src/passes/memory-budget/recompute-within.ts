import { ArgumentError } from "../../errors.ts";
import { nodeCost } from "../../inspection/cost.ts";
import { type Graph, type Node, valueKey } from "../../graph/graph.ts";
import { kernelNodeOf } from "../../graph/kernel-node.ts";
import { roleOf } from "../../ops/role.ts";
import { findOperator } from "../../ops/lookup.ts";
import { byteLength } from "../../shape.ts";
import { eliminateDeadCode } from "../dead-code.ts";
import { optimize } from "../optimize.ts";
import { type Choice, chooseRepeated } from "./choose-repeated.ts";
import { type StepShape, StepWalk } from "./step-walk.ts";
import { withoutRegions } from "../recompute/recompute-regions.ts";
import { isLiteral, mayRunAgain, recomputeValues } from "../recompute/recompute-values.ts";

export interface RecomputeOptions {
  /** Maximum size of the step's intermediate values in bytes. */
  readonly maxBytes: number;
  /** Returns the size in bytes of a graph's intermediate values, according to the memory plan of the backend. */
  readonly workspaceBytes: (graph: Graph) => number;
}

/** Graph with recomputed values that meets a memory limit. */
export interface Recomputation {
  readonly graph: Graph;
  /**
   * Planned bytes of intermediate values without recomputation. The field `bytesAfter` is the planned number of bytes
   * with recomputation.
   */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Flops of the recomputed nodes. The field `flops` contains the flops of the step without recomputation. */
  readonly repeatedFlops: number;
  readonly flops: number;
  /** Number of recomputed nodes, by operator name. */
  readonly repeated: { readonly [op: string]: number };
}

/** Whether a node's results are views of an operand. Recomputing a view has no cost. */
const isView = (graph: Graph, node: Node): boolean =>
  findOperator(graph, node.op)?.viewOffset?.(kernelNodeOf(graph, node)) !== undefined;

/**
 * Converts a graph to the input of `chooseRepeated`. Views and constants are omitted. `ids`: id in the graph of each
 * node of `step`.
 */
const shapeOf = (graph: Graph): { readonly step: StepShape; readonly ids: readonly number[] } => {
  const numbers = new Map<string, number>();
  const bytes: number[] = [];
  const nodes: StepShape["nodes"][number][] = [];
  const ids: number[] = [];
  // A forward node that depends on a gradient runs after the backward pass, even if its phase is forward.
  const dependsOnBackward: boolean[] = [];
  for (const node of graph.nodes) {
    dependsOnBackward.push(node.phase === "backward" || node.inputs.some((ref) => dependsOnBackward[ref.node]!));
    const inputs = node.inputs.flatMap((ref) => numbers.get(valueKey(ref)) ?? []);
    if (isLiteral(node)) continue;
    const isArgument = roleOf(node) === "argument";
    const view = !isArgument && isView(graph, node);
    const outputs = node.specs.map((spec, output) => {
      const viewedNumber = view
        ? numbers.get(valueKey(node.inputs[Math.min(output, node.inputs.length - 1)]!))
        : undefined;
      const number = viewedNumber ?? bytes.push(isArgument ? 0 : byteLength(spec)) - 1;
      numbers.set(valueKey({ node: node.id, output }), number);
      return number;
    });
    if (view || isArgument) continue;
    const mayRepeat = mayRunAgain(node) && !dependsOnBackward[node.id]!;
    nodes.push({
      flops: nodeCost(graph, node).flops,
      inputs,
      outputs,
      isBackward: node.phase === "backward",
      mayRepeat,
    });
    ids.push(node.id);
  }
  return { step: { nodes, bytes, returned: graph.outputs.flatMap((ref) => numbers.get(valueKey(ref)) ?? []) }, ids };
};

/** Recomputes the chosen nodes, and the views of their results, before the backward nodes that read them. */
const repeatNodes = (graph: Graph, chosen: ReadonlySet<number>): Graph => {
  if (chosen.size === 0) return graph;
  const groups: (string | undefined)[] = [];
  for (const node of graph.nodes) {
    const isViewOfChosen = isView(graph, node) && node.inputs.some((ref) => groups[ref.node] !== undefined);
    groups.push(mayRunAgain(node) && (chosen.has(node.id) || isViewOfChosen) ? "chosen" : undefined);
  }
  return eliminateDeadCode(recomputeValues(graph, { groups, keeps: () => false }));
};

/**
 * Maximum number of search rounds. The search varies the peak limit of `chooseRepeated` until the memory plan meets
 * `maxBytes`.
 */
const maxRounds = 6;
/** Fraction of `maxBytes` that may stay unused, because using it would save almost no flops. */
const tolerance = 0.02;

/**
 * Limits the memory of a step's intermediate values: chooses forward values to recompute in the backward pass instead
 * of saving them, with as few flops as possible. If the simplified graph already meets the limit, recomputes nothing.
 *
 * `chooseRepeated` chooses values by their lifetimes alone. The memory plan then checks the choice; the planned size is
 * usually smaller, because of fusion and in-place results.
 *
 * @param graph Whole traced step, after passes such as `mixedPrecision`. `checkpoint` regions are always recomputed.
 * @throws ArgumentError if no choice meets the limit; the message contains the smallest size found.
 * Cost: one memory plan; if recomputation is needed, one to six further plans, each with one call of `chooseRepeated`.
 */
export const recomputeWithin = (graph: Graph, { maxBytes, workspaceBytes }: RecomputeOptions): Recomputation => {
  const tidy = withoutRegions(optimize(graph, { fuse: false, schedule: false }));
  const { step, ids } = shapeOf(tidy);
  const bytesBefore = workspaceBytes(tidy);
  const flops = step.nodes.reduce((sum, node) => sum + node.flops, 0);
  const result = (choice: Pick<Choice, "repeated" | "flops">, now: Graph, bytesAfter: number): Recomputation => ({
    graph: now,
    bytesBefore,
    bytesAfter,
    repeatedFlops: choice.flops,
    flops,
    repeated: Object.fromEntries(
      [...Map.groupBy(choice.repeated, (id) => tidy.nodes[ids[id]!]!.op)]
        .map(([op, all]) => [op, all.length] as const)
        .sort(),
    ),
  });
  if (bytesBefore <= maxBytes) return result({ repeated: [], flops: 0 }, tidy, bytesBefore);

  const none = new StepWalk(step).run(new Uint8Array(step.nodes.length)).peakBytes;
  let [least, best]: [number, Recomputation | undefined] = [bytesBefore, undefined];
  /**
   * Bounds of the search for the peak limit, in bytes. `tooMuch`: lowest limit so far whose plan exceeded `maxBytes`.
   * `enough`: highest limit so far whose plan met `maxBytes`.
   */
  let [tooMuch, enough] = [none, 0];
  let bound = Math.max(0, none - (bytesBefore - maxBytes));
  for (let round = 0; round < maxRounds; round++) {
    const choice = chooseRepeated(step, bound);
    const now = repeatNodes(tidy, new Set(choice.repeated.map((id) => ids[id]!)));
    const bytes = workspaceBytes(now);
    least = Math.min(least, bytes);
    if (bytes <= maxBytes) {
      if (best === undefined || choice.flops < best.repeatedFlops) best = result(choice, now, bytes);
      enough = Math.max(bound, choice.peakBytes);
    } else tooMuch = Math.min(bound, choice.peakBytes);
    // If no choice meets `bound`, `chooseRepeated` has returned the lowest peak, so a lower bound cannot help.
    if (
      bound === 0 ||
      (best === undefined && choice.peakBytes > bound) ||
      (bytes <= maxBytes && maxBytes - bytes <= tolerance * maxBytes)
    )
      break;
    // Correct the limit by the difference between planned bytes and chosen peak; if the result is outside the bounds,
    // bisect.
    const next = choice.peakBytes + (maxBytes - bytes);
    bound = next > enough && next < tooMuch ? next : (tooMuch + enough) / 2;
    if (tooMuch - enough <= tolerance * none && best !== undefined) break;
    // If no round has met `maxBytes` after half of the rounds, try the smallest possible limit.
    if (best === undefined && round >= maxRounds / 2 - 1) bound = 0;
  }
  if (best !== undefined) return best;
  throw new ArgumentError(
    `a step takes ${bytesBefore} bytes of intermediates, and maxBytes is ${maxBytes}; the least that computing values again was found to take is ${least}: allow so many, or make the batch smaller`,
  );
};
