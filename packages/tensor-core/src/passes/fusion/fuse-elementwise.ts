import { type Graph, GraphBuilder, type Node, specOf, valueKey } from "../../graph/graph.ts";
import { foldTile } from "../../ops/fused.ts";
import { roleOf } from "../../ops/role.ts";
import { operators } from "../../ops/table.ts";
import { isCollective } from "../collective-order.ts";
import { ContractedGraph } from "./contracted-graph.ts";
import { liveNodes } from "../dead-code.ts";
import { emitView, emitFused, emitReduction, foldLoadsOf, type Loads, loadsOf, sourceOfView } from "./fused-program.ts";
import { elementCount } from "../../shape.ts";
import { type Extents, refine } from "./iteration-space.ts";

export interface FusionOptions {
  /**
   * Maximum number of registers of one fused node: one per input and instruction. A kernel stores a block of values per
   * register. With more registers, the blocks would exceed the level 1 cache. Default: 64.
   */
  readonly maxRegisters?: number;
  /**
   * Maximum number of inputs and results of one fused node. 24 is enough for Adam with weight decay and clipping.
   * WebGPU can bind fewer buffers. Default: 24.
   */
  readonly maxOperands?: number;
  /**
   * Maximum tile size: number of result elements that a kernel keeps at a time and can reduce in place, see
   * `FusedParams.folds`. Absent: reductions stay separate nodes.
   */
  readonly maxTile?: number;
}

/** Fused node under construction. */
interface Group {
  readonly extents: Extents;
  /** Maximum number of collectives on a path from a graph input to a node of this group. */
  readonly depth: number;
}

const isElementwise = (node: Node): boolean => operators[node.op]?.scalar !== undefined;

/** Whether a node's result is available only after communication with other ranks. */
const isExchange = (node: Node): boolean => roleOf(node) === "done" || (isCollective(node) && roleOf(node) !== "start");

const lengthOf = ({ extents }: Group): number => extents.at(-1) ?? 1;

/**
 * Returns the readers of each value that several nodes read completely and without broadcasting: one list of node ids
 * per value, ascending. Values with a single reader are omitted.
 */
const readersOf = (graph: Graph, loads: readonly (Loads | undefined)[], live: readonly boolean[]): number[][] => {
  const readers = new Map<string, number[]>();
  for (const node of graph.nodes) {
    const own = loads[node.id];
    if (own === undefined || !live[node.id]!) continue;
    for (const load of own.list) {
      if (load.kind === "number" || elementCount(specOf(graph, load.ref).shape) !== own.extents.at(-1)) continue;
      const key = valueKey(load.ref);
      const known = readers.get(key);
      if (known === undefined) readers.set(key, [node.id]);
      else if (known.at(-1) !== node.id) known.push(node.id);
    }
  }
  return [...readers.values()].filter(({ length }) => length > 1);
};

/**
 * Returns the edges of the graph, plus an edge from each collective to the next collective of the trace. Without these
 * edges, fusion could make a collective wait for a later collective of the trace. On a rank with a different graph, the
 * dependency might be reversed, and no common order would exist.
 */
const withTraceOrder = (
  graph: Graph,
  live: readonly boolean[],
  successors: readonly (readonly number[])[],
): number[][] => {
  const ordered = successors.map((next) => [...next]);
  const chain = graph.nodes.filter((node) => live[node.id]! && (isCollective(node) || roleOf(node) === "done"));
  for (const [i, { id }] of chain.slice(1).entries()) ordered[chain[i]!.id]!.push(id);
  return ordered;
};

/**
 * Replaces groups of elementwise nodes by `fused` nodes: one kernel and one pass over memory per group. Only nodes
 * whose result can be a view stay separate.
 *
 * Adjacent nodes are fused under three conditions: they iterate over the same number of elements in the same order
 * (ignoring reshapes), no path between the two nodes leads through another node, and the fused program stays small.
 * Constants become instructions; `broadcast-to` operands are read in place with stride 0. Values that nodes outside the
 * group read become results. For example, the update of one parameter by SGD or Adam is one fused node.
 *
 * With `maxTile`, a reduction over the last dimensions (`sum`, `reduce-max` and `reduce-min` of f32, `pack-bits`) is
 * fused with the node that computes its operand, and the operand is written to memory only if other nodes read the
 * operand. Several reductions of one value are fused and read the value once. A reduction is not fused with a node that
 * reads its result.
 *
 * A group is fused with a node that depends on more collectives only if no other node reads the results of the group.
 * Otherwise, an encoded gradient would wait for the exchange of another gradient.
 *
 * Dead nodes are removed. In the `shape` of a fused node, contiguous dimensions are merged; at least one dimension is
 * kept.
 */
export const fuseElementwise = (
  graph: Graph,
  { maxRegisters = 64, maxOperands = 24, maxTile }: FusionOptions = {},
): Graph => {
  const loads = graph.nodes.map((node): Loads | undefined => {
    if (isElementwise(node)) return loadsOf(graph, node);
    return maxTile === undefined ? undefined : foldLoadsOf(graph, node);
  });
  const reads = graph.nodes.map(
    (node, id) => loads[id]?.list.flatMap((load) => (load.kind === "value" ? [load.ref] : [])) ?? node.inputs,
  );
  const live = liveNodes(graph, reads);
  const successors: number[][] = graph.nodes.map(() => []);
  const depths: number[] = [];
  for (const node of graph.nodes) {
    const sources = reads[node.id]!.map((ref) => ref.node);
    depths.push(Math.max(0, ...sources.map((id) => depths[id]! + (isExchange(graph.nodes[id]!) ? 1 : 0))));
    if (live[node.id]!) for (const id of sources) successors[id]!.push(node.id);
  }
  const isOutput = new Set(graph.outputs.map((ref) => ref.node));
  const contracted = new ContractedGraph(withTraceOrder(graph, live, successors));
  const groups = new Map<number, Group>();

  const resultsOf = (members: ReadonlySet<number>): number[] =>
    [...members].filter((id) => isOutput.has(id) || successors[id]!.some((next) => !members.has(next)));
  const foldsOf = (members: readonly number[]): number[] => members.filter((id) => loads[id]!.fold !== undefined);
  /** Whether no member reads the result of another member's fold, and all folds can use the same tile size. */
  const canFold = (members: readonly number[]): boolean => {
    const folds = foldsOf(members);
    if (folds.length === 0) return true;
    const inside = new Set(members);
    return (
      folds.every((id) => successors[id]!.every((next) => !inside.has(next))) &&
      foldTile(
        folds.map((id) => loads[id]!.fold!),
        maxTile!,
      ) !== undefined
    );
  };
  const isSmall = (members: ReadonlySet<number>): boolean => {
    const inputs = new Set<string>();
    const constants = new Set<string>();
    for (const id of members) {
      for (const load of loads[id]!.list) {
        if (load.kind === "number") constants.add(`${load.value} ${load.dtype}`);
        else if (!members.has(load.ref.node)) inputs.add(`${valueKey(load.ref)} ${load.strides.join()}`);
      }
    }
    return (
      inputs.size + constants.size + members.size <= maxRegisters &&
      inputs.size + resultsOf(members).length <= maxOperands
    );
  };
  const join = (producer: number, user: number): void => {
    const [a, b] = [groups.get(producer)!, groups.get(user)!];
    const extents = lengthOf(a) === lengthOf(b) ? refine(a.extents, b.extents) : undefined;
    if (extents === undefined) return;
    if (a.depth < b.depth && [...contracted.after(producer)].some((next) => next !== user)) return;
    const members = [...contracted.members(producer), ...contracted.members(user)];
    if (!canFold(members) || !isSmall(new Set(members))) return;
    const merged = contracted.merge(producer, user);
    if (merged !== undefined) groups.set(merged, { extents, depth: Math.max(a.depth, b.depth) });
  };

  // Process nodes from last to first, so that each value is fused with its earliest possible reader. Values that only
  // the backward pass reads (the mask of a ReLU, the derivative of a GELU) are then computed in the backward pass from
  // saved values. Otherwise, the forward pass would write and save these values.
  for (const node of graph.nodes.toReversed()) {
    const own = loads[node.id];
    if (!live[node.id]! || own === undefined) continue;
    groups.set(node.id, { extents: own.extents, depth: depths[node.id]! });
    for (const next of successors[node.id]!) {
      const producer = contracted.find(node.id);
      const user = contracted.find(next);
      if (producer !== user && groups.has(user)) join(producer, user);
    }
  }
  for (const readers of readersOf(graph, loads, live)) {
    for (const [i, reader] of readers.entries()) {
      for (const other of readers.slice(i + 1)) {
        const [a, b] = [contracted.find(reader), contracted.find(other)];
        const fold = [a, b].every((vertex) => foldsOf(contracted.members(vertex)).length > 0);
        if (a !== b && fold && groups.get(a)!.depth === groups.get(b)!.depth) join(a, b);
      }
    }
  }

  const builder = new GraphBuilder();
  for (const vertex of contracted.order) {
    if (vertex === -1 || !live[vertex]!) continue;
    const group = groups.get(vertex);
    const members = contracted.members(vertex);
    const source =
      group && members.length === 1 ? sourceOfView(graph, graph.nodes[vertex]!, loads[vertex]!) : undefined;
    if (group === undefined) builder.copy(graph.nodes[vertex]!);
    else if (members.length === 1 && loads[vertex]!.fold !== undefined)
      emitReduction(builder, graph, graph.nodes[vertex]!, loads[vertex]!);
    else if (source !== undefined) emitView(builder, graph, graph.nodes[vertex]!, source);
    else emitFused(builder, graph, members, resultsOf(new Set(members)), loads, group.extents);
  }
  return builder.finish(graph);
};
