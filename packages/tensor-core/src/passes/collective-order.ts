import { CollectiveOrderError } from "../errors.ts";
import { nodeCost } from "../inspection/cost.ts";
import { type Graph, type Node, specOf } from "../graph/graph.ts";
import { paramKey } from "../graph/param-key.ts";
import { findOperator } from "../ops/lookup.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { byteLength } from "../shape.ts";

/** One collective of a rank's graph, with the facts that other ranks need. */
export interface GraphCollective {
  readonly axis: string;
  /** Description that must be equal on all participating ranks: operator, sizes, parameters, priority. */
  readonly what: string;
  /**
   * Participating ranks of a `send-receive`, by position along the axis. Other ranks need not have this collective.
   * Absent: all ranks of the group.
   */
  readonly ends?: readonly number[];
  /**
   * Indices of the collectives of this rank that must be done before this one can start; transitive dependencies are
   * omitted.
   */
  readonly after: readonly number[];
  /** Flops plus bytes of all nodes that this rank must compute before the collective. */
  readonly work: number;
}

/**
 * Collectives of a rank's graph in trace order, and the order in which the rank starts them: indices into that list.
 */
export interface CollectiveOrder {
  readonly collectives: readonly GraphCollective[];
  readonly order: readonly number[];
}

/** Collectives of a rank's graph, as sent to other ranks. */
export interface RankCollectives {
  /** World ranks of this rank's group along each axis. */
  readonly axes: { readonly [axis: string]: readonly number[] };
  readonly collectives: readonly GraphCollective[];
}

/**
 * Whether a node starts a collective, or is a collective that no pass has split yet. An operator that returns the
 * rank's coordinate does not communicate and does not count.
 */
export const isCollective = (node: Node): boolean =>
  operators[node.op]?.collective !== undefined && roleOf(node) !== "position";

const workOf = (graph: Graph, node: Node): number => {
  if (findOperator(graph, node.op) === undefined) return 0;
  const { flops, bytesRead, bytesWritten } = nodeCost(graph, node);
  return flops + bytesRead + bytesWritten;
};

/** Nodes that must run before node `id`, ascending. Cost: O(nodes + edges) before it. */
export const ancestorsOf = (graph: Graph, id: number): number[] => {
  const isAncestor = new Uint8Array(id + 1);
  isAncestor[id] = 1;
  const found: number[] = [];
  for (let at = id; at >= 0; at--) {
    if (isAncestor[at] === 0) continue;
    if (at !== id) found.push(at);
    for (const ref of graph.nodes[at]!.inputs) isAncestor[ref.node] = 1;
  }
  return found.reverse();
};

const describe = (graph: Graph, node: Node): Pick<GraphCollective, "axis" | "what" | "ends"> => {
  const { axis, axisSize, collective = node.op, position: _, standing: __, ...params } = node.params;
  const sizes = node.inputs.map((ref) => `${byteLength(specOf(graph, ref))} bytes of ${specOf(graph, ref).dtype}`);
  const { pairs } = params as { readonly pairs?: readonly (readonly number[])[] };
  return {
    axis: String(axis),
    what: `${String(collective)} of ${sizes.join(" and ")}${Object.keys(params).length === 0 ? "" : ` ${paramKey(params)}`} along axis "${String(axis)}" of ${Number(axisSize)} ranks`,
    ...(pairs !== undefined && { ends: [...new Set(pairs.flat())] }),
  };
};

/**
 * Facts about a graph's collectives that the ranks of a world need to agree on their order. Cost: O(collectives ·
 * (nodes + edges)).
 *
 * @param nodes the graph's collectives, in trace order.
 */
export const collectivesOf = (graph: Graph, nodes: readonly Node[]): GraphCollective[] => {
  const positions = new Map(nodes.map(({ id }, position) => [id, position]));
  const works: number[] = [];
  /** Per collective, all collectives that must be done before it. */
  const all: Set<number>[] = [];
  return nodes.map((node, position) => {
    const before = new Set<number>();
    let work = 0;
    for (const id of ancestorsOf(graph, node.id)) {
      const collective = positions.get(id);
      if (collective !== undefined) before.add(collective);
      work += works[id] ??= workOf(graph, graph.nodes[id]!);
    }
    // If collectives are split in place, each is waited for before the next one starts.
    if (node.params["standing"] === true && position > 0)
      for (const earlier of [position - 1, ...all[position - 1]!]) before.add(earlier);
    all.push(before);
    const after: number[] = [];
    const implied = new Set<number>();
    for (const one of [...before].sort((a, b) => b - a)) {
      if (implied.has(one)) continue;
      after.push(one);
      for (const earlier of all[one]!) implied.add(earlier);
    }
    return { ...describe(graph, node), after, work };
  });
};

/** Collectives of a scheduled graph, and the order of their starts. */
export const collectiveOrderOf = (graph: Graph): CollectiveOrder => {
  const started = graph.nodes.filter(isCollective);
  const traced = started.toSorted((a, b) => Number(a.params["position"]) - Number(b.params["position"]));
  const positions = new Map(traced.map(({ id }, position) => [id, position]));
  return { collectives: collectivesOf(graph, traced), order: started.map(({ id }) => positions.get(id)!) };
};

/** One collective of the world, matched across its participating ranks. */
export interface MatchedCollective {
  readonly what: string;
  /** World ranks that must participate, ascending. */
  readonly expected: readonly number[];
  /** Index of the collective in its group, counted from 1. */
  readonly count: number;
  /** Index in the list of each participating rank. */
  readonly positions: Map<number, number>;
  readonly after: Set<MatchedCollective>;
  depth: number;
  work: number;
  /** Lowest index on any rank, and the first rank found to participate. */
  first: number;
  readonly rank: number;
}

const formatRanks = (ranks: readonly number[]): string =>
  `rank${ranks.length === 1 ? "" : "s"} ${ranks.length < 2 ? "" : `${ranks.slice(0, -1).join(", ")} and `}${ranks.at(-1)}`;

/** Error that describes how the ranks of a group differ in one collective. */
const mismatchError = (
  { what, count, expected, positions }: MatchedCollective,
  others: ReadonlyMap<number, string>,
): CollectiveOrderError => {
  const missing = expected.filter((rank) => !positions.has(rank));
  const byWhat = Map.groupBy(positions.keys(), (rank) => others.get(rank) ?? what);
  const [own, ...different] = [...byWhat].map(
    ([each, ranks]) => `${each} on ${formatRanks(ranks.toSorted((a, b) => a - b))}`,
  );
  const found = different.length === 0 ? own : `${different.join(", ")}, but ${own}`;
  const absent = `${formatRanks(missing)} ${missing.length === 1 ? "has" : "have"} only ${count - 1} in this group`;
  return new CollectiveOrderError(
    `collective ${count} of its group is ${found}${missing.length === 0 ? "" : `, but ${absent}`}`,
  );
};

/**
 * Match the collectives of different ranks: the first, the second, … of a group; for a message, the first, the second,
 * … between the same ends.
 */
const matchCollectives = (ranks: readonly RankCollectives[]): MatchedCollective[] => {
  const known = new Map<string, MatchedCollective>();
  const differences = new Map<MatchedCollective, Map<number, string>>();
  const byRank = ranks.map(({ axes, collectives }, rank) => {
    const counts = new Map<string, number>();
    return collectives.map(({ axis, what, ends, work }, position) => {
      const members = axes[axis] ?? [];
      const expected = ends === undefined ? members : ends.map((end) => members[end]!);
      const participates = expected.includes(rank);
      // A message between other ranks transfers nothing on this rank, so it is not matched.
      const group = participates ? `${axis} ${members.join()} ${ends === undefined ? "" : what}` : `alone ${rank}`;
      const count = (counts.get(group) ?? 0) + 1;
      counts.set(group, count);
      const key = `${group} ${count}`;
      const matched: MatchedCollective = known.get(key) ?? {
        what,
        expected: participates ? expected : [rank],
        count,
        positions: new Map(),
        after: new Set(),
        depth: 0,
        work: 0,
        first: position,
        rank,
      };
      known.set(key, matched);
      if (matched.what !== what)
        differences.set(matched, (differences.get(matched) ?? new Map<number, string>()).set(rank, what));
      matched.positions.set(rank, position);
      matched.work = Math.max(matched.work, work);
      matched.first = Math.min(matched.first, position);
      return matched;
    });
  });
  const all = [...known.values()];
  const unfit = all.filter((matched) => differences.has(matched) || matched.positions.size < matched.expected.length);
  // Report the earliest mismatch in a trace: later ones are often its consequences.
  const [first] = unfit.toSorted((a, b) => a.first - b.first || a.rank - b.rank);
  if (first !== undefined) throw mismatchError(first, differences.get(first) ?? new Map());
  ranks.forEach(({ collectives }, rank) =>
    collectives.forEach(({ after }, position) => {
      for (const before of after) byRank[rank]![position]!.after.add(byRank[rank]![before]!);
    }),
  );
  return all;
};

/**
 * Set the depth of every collective: the maximum number of collectives on a path to it. @throws CollectiveOrderError
 * with a cycle, if there is one.
 */
const computeDepths = (all: readonly MatchedCollective[]): void => {
  const waiting = new Map(all.map((matched) => [matched, matched.after.size]));
  const next = new Map<MatchedCollective, MatchedCollective[]>(all.map((matched) => [matched, []]));
  for (const matched of all) for (const before of matched.after) next.get(before)!.push(matched);
  const ready = all.filter(({ after }) => after.size === 0);
  for (let matched = ready.pop(); matched !== undefined; matched = ready.pop()) {
    waiting.delete(matched);
    for (const later of next.get(matched)!) {
      later.depth = Math.max(later.depth, matched.depth + 1);
      const left = waiting.get(later)! - 1;
      waiting.set(later, left);
      if (left === 0) ready.push(later);
    }
  }
  if (waiting.size === 0) return;
  const path: MatchedCollective[] = [];
  let at = [...waiting.keys()][0]!;
  for (; !path.includes(at); at = [...at.after].find((before) => waiting.has(before))!) path.push(at);
  const cycle = path.slice(path.indexOf(at));
  const steps = cycle.map((matched, i) => {
    const before = cycle[(i + 1) % cycle.length]!;
    const rank = [...matched.positions.keys()].find((one) => before.positions.has(one))!;
    return `rank ${rank} needs ${before.what} (${before.count} of its group) before ${matched.what} (${matched.count} of its group)`;
  });
  throw new CollectiveOrderError(`collectives wait for each other in a cycle: ${steps.join("; ")}`);
};

/** All collectives of a world in their canonical order. @throws CollectiveOrderError as `canonicalOrder` does. */
export const matchedInOrder = (ranks: readonly RankCollectives[]): MatchedCollective[] => {
  const all = matchCollectives(ranks);
  computeDepths(all);
  return all.sort((a, b) => a.depth - b.depth || a.work - b.work || a.first - b.first || a.rank - b.rank);
};

/**
 * Canonical order of collectives: one order of all collectives of a world; every rank starts its own collectives in
 * this order. It is a function of the graphs of all ranks, so ranks with different graphs compute the same order.
 *
 * Collectives of a group match between two ranks if they have the same index in the group's sequence. A `send-receive`
 * must also have the same pairs, and only the ranks in its pairs need it. A collective comes after all collectives that
 * any rank needs for it. Among those that are ready, collectives are ordered by the maximum number of collectives on a
 * path to them, then by the maximum work that a rank has before them, then by their index in the trace.
 *
 * Ranks that start their collectives in this order cannot deadlock: the first unfinished collective in the order waits
 * for no other.
 *
 * Cost: O(collectives of all ranks · their dependencies).
 *
 * @param ranks collectives of all ranks of the world, in rank order.
 * @returns for each rank, indices into its list in the order of their starts.
 * @throws CollectiveOrderError if ranks have different collectives at the same index, or if no common order exists.
 */
export const canonicalOrder = (ranks: readonly RankCollectives[]): number[][] => {
  const orders: number[][] = ranks.map(() => []);
  for (const { positions } of matchedInOrder(ranks))
    for (const [rank, position] of positions) orders[rank]!.push(position);
  return orders;
};
