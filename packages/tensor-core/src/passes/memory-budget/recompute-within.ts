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
import { isGiven, mayRunAgain, recomputeValues } from "../recompute/recompute-values.ts";

export interface RecomputeOptions {
  /** Bytes of intermediates that the planned step may take. */
  readonly maxBytes: number;
  /** What a graph takes, by the memory plan of what runs it. */
  readonly workspaceBytes: (graph: Graph) => number;
}

/** What was chosen to keep a step within a bound. */
export interface Recomputation {
  readonly graph: Graph;
  /** Before and after, as planned. */
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Flops of what is repeated, and of the step without it. */
  readonly repeatedFlops: number;
  readonly flops: number;
  /** Operators that are repeated, how many of each. */
  readonly repeated: { readonly [op: string]: number };
}

/** Results lie in an operand, so that to repeat it is to look there again. */
const isView = (graph: Graph, node: Node): boolean =>
  findOperator(graph, node.op)?.viewOffset?.(kernelNodeOf(graph, node)) !== undefined;

/** A graph as the choice sees it: without views and numbers. `ids` are the nodes of the graph. */
const shapeOf = (graph: Graph): { readonly step: StepShape; readonly ids: readonly number[] } => {
  const numbers = new Map<string, number>();
  const bytes: number[] = [];
  const nodes: StepShape["nodes"][number][] = [];
  const ids: number[] = [];
  // A forward node that reads a gradient runs behind the backward pass, whatever it says.
  const isBehind: boolean[] = [];
  for (const node of graph.nodes) {
    isBehind.push(node.phase === "backward" || node.inputs.some((ref) => isBehind[ref.node]!));
    const inputs = node.inputs.flatMap((ref) => numbers.get(valueKey(ref)) ?? []);
    if (isGiven(node)) continue;
    const isArgument = roleOf(node) === "argument";
    const view = !isArgument && isView(graph, node);
    const outputs = node.specs.map((spec, output) => {
      const shown = view ? numbers.get(valueKey(node.inputs[Math.min(output, node.inputs.length - 1)]!)) : undefined;
      const number = shown ?? bytes.push(isArgument ? 0 : byteLength(spec)) - 1;
      numbers.set(valueKey({ node: node.id, output }), number);
      return number;
    });
    if (view || isArgument) continue;
    const mayRepeat = mayRunAgain(node) && !isBehind[node.id]!;
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

/** Repeat these nodes where backward reads them, and look again where their views lie. */
const repeatNodes = (graph: Graph, chosen: ReadonlySet<number>): Graph => {
  if (chosen.size === 0) return graph;
  const groups: (string | undefined)[] = [];
  for (const node of graph.nodes) {
    const shows = isView(graph, node) && node.inputs.some((ref) => groups[ref.node] !== undefined);
    groups.push(mayRunAgain(node) && (chosen.has(node.id) || shows) ? "chosen" : undefined);
  }
  return eliminateDeadCode(recomputeValues(graph, { groups, keeps: () => false }));
};

/** Rounds in which the bound of the choice is brought to where the memory plan meets its own. */
const maxRounds = 6;
/** Share of the bound that may be left unused: to use it saves hardly a flop. */
const closeEnough = 0.02;

/**
 * Keep the intermediates of a step within a bound: choose what of its forward pass backward computes again instead of
 * reading what was kept, with as few flops as can be found. Returns the graph as it is, tidied, where it meets the
 * bound.
 *
 * The choice is made by lifetimes alone (`chooseRepeated`), and judged by the memory plan: fusion and results computed
 * in place take less.
 *
 * @param graph a whole traced step, after passes such as `mixedPrecision`. What `checkpoint` marks is repeated in any
 * case.
 * @throws ArgumentError where nothing that was found meets the bound, with the least that does.
 * Cost: two to seven memory plans, and a choice for each but the first.
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
  /** Bounds of the choice by which the plan was found to take too much, and not. */
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
    // What no choice keeps within the bound comes with the least peak that was found.
    if (
      bound === 0 ||
      (best === undefined && choice.peakBytes > bound) ||
      (bytes <= maxBytes && maxBytes - bytes <= closeEnough * maxBytes)
    )
      break;
    // By how much the plan differs from what was thought; where that leads out of what is known, halfway in.
    const next = choice.peakBytes + (maxBytes - bytes);
    bound = next > enough && next < tooMuch ? next : (tooMuch + enough) / 2;
    if (tooMuch - enough <= closeEnough * none && best !== undefined) break;
    // The least that can be is tried before the search is given up.
    if (best === undefined && round >= maxRounds / 2 - 1) bound = 0;
  }
  if (best !== undefined) return best;
  throw new ArgumentError(
    `a step takes ${bytesBefore} bytes of intermediates, and maxBytes is ${maxBytes}; the least that computing values again was found to take is ${least}: allow so many, or make the batch smaller`,
  );
};
