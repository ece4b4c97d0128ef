import { CollectiveOrderError } from "../errors.ts";
import { nodeCost } from "../inspection/cost.ts";
import { type Graph, type Node, specOf } from "../graph/graph.ts";
import { paramKey } from "../graph/param-key.ts";
import { findOperator } from "../ops/lookup.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { byteLength } from "../shape.ts";

/** Collective of a rank's graph, with the properties needed to compute a common order. */
export interface GraphCollective {
  readonly axis: string;
  /** Description of the collective: operator, sizes, parameters, priority. Must be equal on all participating ranks. */
  readonly what: string;
  /**
   * Participating ranks of a `send-receive`, as coordinates along the axis. The graphs of other ranks need not contain
   * this collective. Absent: all ranks of the group participate.
   */
  readonly ends?: readonly number[];
  /**
   * Indices of this rank's collectives on which this collective directly depends; transitive dependencies are omitted.
   */
  readonly after: readonly number[];
  /** Flops plus bytes of all nodes on which the collective depends. */
  readonly work: number;
}

/** Collectives of a rank's graph in trace order, and their start order as indices into this list. */
export interface CollectiveOrder {
  readonly collectives: readonly GraphCollective[];
  readonly order: readonly number[];
}

/** Collectives of a rank's graph, in the format that ranks exchange. */
export interface RankCollectives {
  /** World ranks of this rank's group along each mesh axis. */
  readonly axes: { readonly [axis: string]: readonly number[] };
  readonly collectives: readonly GraphCollective[];
}

/**
 * Whether a node is a start node of a collective, or a collective that is not split yet. False for an operator that
 * returns the rank's coordinate, because that operator does not communicate.
 */
export const isCollective = (node: Node): boolean =>
  operators[node.op]?.collective !== undefined && roleOf(node) !== "position";

const workOf = (graph: Graph, node: Node): number => {
  if (findOperator(graph, node.op) === undefined) return 0;
  const { flops, bytesRead, bytesWritten } = nodeCost(graph, node);
  return flops + bytesRead + bytesWritten;
};

/** Returns the ids of all nodes on which node `id` depends, ascending. Cost: O(nodes + edges) before node `id`. */
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
 * Describes a graph's collectives, as input for computing the common order of all ranks.
 * Cost: O(collectives · (nodes + edges)).
 *
 * @param nodes Nodes of the graph's collectives, in trace order.
 */
export const collectivesOf = (graph: Graph, nodes: readonly Node[]): GraphCollective[] => {
  const positions = new Map(nodes.map(({ id }, position) => [id, position]));
  const works: number[] = [];
  /** For each collective, the indices of all collectives on which it depends, directly or transitively. */
  const all: Set<number>[] = [];
  return nodes.map((node, position) => {
    const before = new Set<number>();
    let work = 0;
    for (const id of ancestorsOf(graph, node.id)) {
      const collective = positions.get(id);
      if (collective !== undefined) before.add(collective);
      work += works[id] ??= workOf(graph, graph.nodes[id]!);
    }
    // If collectives are split in place, each collective must be done before the next collective starts.
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

/** Returns the collectives of a scheduled graph, and their start order. */
export const collectiveOrderOf = (graph: Graph): CollectiveOrder => {
  const started = graph.nodes.filter(isCollective);
  const traced = started.toSorted((a, b) => Number(a.params["position"]) - Number(b.params["position"]));
  const positions = new Map(traced.map(({ id }, position) => [id, position]));
  return { collectives: collectivesOf(graph, traced), order: started.map(({ id }) => positions.get(id)!) };
};

/** Collective that was matched across the graphs of all ranks, with its index on each participating rank. */
export interface MatchedCollective {
  readonly what: string;
  /** World ranks whose graphs must contain the collective, ascending. */
  readonly expected: readonly number[];
  /** Position of the collective in the sequence of its group's collectives, from 1. */
  readonly count: number;
  /**
   * Index of the collective in the list of collectives of each participating rank, by world rank. Filled while the
   * graphs of the ranks are matched.
   */
  readonly positions: Map<number, number>;
  readonly after: Set<MatchedCollective>;
  depth: number;
  work: number;
  /** Lowest index of the collective in any rank's list. `rank`: first rank that was found to participate. */
  first: number;
  readonly rank: number;
}

const formatRanks = (ranks: readonly number[]): string =>
  `rank${ranks.length === 1 ? "" : "s"} ${ranks.length < 2 ? "" : `${ranks.slice(0, -1).join(", ")} and `}${ranks.at(-1)}`;

/** Creates the error that describes how the ranks of a group differ in one collective. */
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
 * Matches the collectives of different ranks: the n-th collective of a group on one rank matches the n-th collective of
 * this group on every other rank. A `send-receive` is matched by its index among the transfers with the same
 * description.
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
      // A `send-receive` between other ranks transfers no data on this rank, so it is not matched.
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
  // Report the earliest mismatch in a trace, because later mismatches are often its consequences.
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
 * Sets the depth of each collective: the maximum number of earlier collectives on a dependency path that ends at the
 * collective. Throws CollectiveOrderError if dependencies form a cycle; the message contains the cycle.
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

/**
 * Returns all collectives of a world in canonical order. Throws CollectiveOrderError in the same cases as
 * `canonicalOrder`.
 */
export const matchedInOrder = (ranks: readonly RankCollectives[]): MatchedCollective[] => {
  const all = matchCollectives(ranks);
  computeDepths(all);
  return all.sort((a, b) => a.depth - b.depth || a.work - b.work || a.first - b.first || a.rank - b.rank);
};

/**
 * Computes the canonical order of all collectives of a world. Each rank starts the collectives of its graph in this
 * order. The order is a function of the graphs of all ranks, so all ranks compute the same order, even if their graphs
 * differ.
 *
 * Collectives of two ranks match if they have the same index in the sequence of their group. A `send-receive` must also
 * have the same pairs, and only the ranks in these pairs need the `send-receive`. A collective comes after all
 * collectives on which it depends on any rank. Collectives that do not depend on each other are ordered by the maximum
 * number of earlier collectives on a dependency path, then by the maximum `work` on any rank, then by their index in
 * the trace.
 *
 * Ranks that start their collectives in this order cannot deadlock, because the first unfinished collective in the
 * order does not wait for any other collective.
 *
 * Cost: O(collectives of all ranks · their dependencies).
 *
 * @param ranks Collectives of all ranks of the world, in rank order.
 * @returns For each rank, indices into its list of collectives, in start order.
 * @throws CollectiveOrderError if ranks of a group have different collectives at the same index, or if no common order
 * exists.
 */
export const canonicalOrder = (ranks: readonly RankCollectives[]): number[][] => {
  const orders: number[][] = ranks.map(() => []);
  for (const { positions } of matchedInOrder(ranks))
    for (const [rank, position] of positions) orders[rank]!.push(position);
  return orders;
};
