import { CollectiveOrderError } from "../errors.ts";
import { nodeCost } from "../inspection/cost.ts";
import { type Graph, type Node, specOf } from "../graph/graph.ts";
import { paramKey } from "../graph/param-key.ts";
import { findOperator } from "../ops/lookup.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { byteLength } from "../shape.ts";

/** One collective of a rank's graph, as far as other ranks have a part in it. */
export interface GraphCollective {
  readonly axis: string;
  /** All that must be the same on every rank that takes part: operator, sizes, parameters, priority. */
  readonly what: string;
  /** Of a `send-receive`: positions along the axis of the ranks that it concerns. All others need not have it. */
  readonly ends?: readonly number[];
  /**
   * Collectives of this rank, by position, that must be done before this one can start, but for those that follow from
   * others.
   */
  readonly after: readonly number[];
  /** Flops and bytes of all that this rank computes before it. */
  readonly work: number;
}

/**
 * The collectives of a rank's graph in the order of its trace, and the order in which it starts them: positions in that
 * list.
 */
export interface CollectiveOrder {
  readonly collectives: readonly GraphCollective[];
  readonly order: readonly number[];
}

/** What a rank tells the others of its graph. */
export interface RankCollectives {
  /** For each axis, the ranks of this rank's group in the world. */
  readonly axes: { readonly [axis: string]: readonly number[] };
  readonly collectives: readonly GraphCollective[];
}

/** A node that begins a collective, or is one that no pass has split yet. To tell a rank its position moves nothing. */
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
 * What the ranks of a world must know of a graph's collectives to agree on their order. Cost: O(collectives · (nodes +
 * edges)).
 *
 * @param nodes the graph's collectives, in the order of the trace.
 */
export const collectivesOf = (graph: Graph, nodes: readonly Node[]): GraphCollective[] => {
  const positions = new Map(nodes.map(({ id }, position) => [id, position]));
  const works: number[] = [];
  /** Per collective, all that must be done before it. */
  const all: Set<number>[] = [];
  return nodes.map((node, position) => {
    const before = new Set<number>();
    let work = 0;
    for (const id of ancestorsOf(graph, node.id)) {
      const collective = positions.get(id);
      if (collective !== undefined) before.add(collective);
      work += works[id] ??= workOf(graph, graph.nodes[id]!);
    }
    // Split where they stand, each is waited for before the next one starts.
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

/** The collectives of a scheduled graph, and the order of their starts. */
export const collectiveOrderOf = (graph: Graph): CollectiveOrder => {
  const started = graph.nodes.filter(isCollective);
  const traced = started.toSorted((a, b) => Number(a.params["position"]) - Number(b.params["position"]));
  const positions = new Map(traced.map(({ id }, position) => [id, position]));
  return { collectives: collectivesOf(graph, traced), order: started.map(({ id }) => positions.get(id)!) };
};

/** One collective of the world: what the ranks that take part in it have in common. */
export interface Meeting {
  readonly what: string;
  /** Ranks of the world that must come, ascending. */
  readonly expected: readonly number[];
  /** Which of its group's it is, counted from 1. */
  readonly count: number;
  /** Position in the list of each rank that comes. */
  readonly positions: Map<number, number>;
  readonly after: Set<Meeting>;
  depth: number;
  work: number;
  /** Least position on any rank, and the lowest rank that comes. */
  first: number;
  readonly rank: number;
}

const numbered = (ranks: readonly number[]): string =>
  `rank${ranks.length === 1 ? "" : "s"} ${ranks.length < 2 ? "" : `${ranks.slice(0, -1).join(", ")} and `}${ranks.at(-1)}`;

/** What the ranks of a group have in the place of one collective. */
const differenceAt = (
  { what, count, expected, positions }: Meeting,
  others: ReadonlyMap<number, string>,
): CollectiveOrderError => {
  const missing = expected.filter((rank) => !positions.has(rank));
  const byWhat = Map.groupBy(positions.keys(), (rank) => others.get(rank) ?? what);
  const [own, ...different] = [...byWhat].map(
    ([each, ranks]) => `${each} on ${numbered(ranks.toSorted((a, b) => a - b))}`,
  );
  const found = different.length === 0 ? own : `${different.join(", ")}, but ${own}`;
  const absent = `${numbered(missing)} ${missing.length === 1 ? "has" : "have"} only ${count - 1} there`;
  return new CollectiveOrderError(
    `collective ${count} of its group is ${found}${missing.length === 0 ? "" : `, but ${absent}`}`,
  );
};

/**
 * Find the collectives of different ranks that are one and the same: of a group the first, the second, …, of a
 * message's two ends likewise.
 */
const meetingsOf = (ranks: readonly RankCollectives[]): Meeting[] => {
  const known = new Map<string, Meeting>();
  const differing = new Map<Meeting, Map<number, string>>();
  const ofRank = ranks.map(({ axes, collectives }, rank) => {
    const counts = new Map<string, number>();
    return collectives.map(({ axis, what, ends, work }, position) => {
      const members = axes[axis] ?? [];
      const expected = ends === undefined ? members : ends.map((end) => members[end]!);
      const takesPart = expected.includes(rank);
      // A message between others moves nothing here, so nobody is met.
      const group = takesPart ? `${axis} ${members.join()} ${ends === undefined ? "" : what}` : `alone ${rank}`;
      const count = (counts.get(group) ?? 0) + 1;
      counts.set(group, count);
      const key = `${group} ${count}`;
      const meeting: Meeting = known.get(key) ?? {
        what,
        expected: takesPart ? expected : [rank],
        count,
        positions: new Map(),
        after: new Set(),
        depth: 0,
        work: 0,
        first: position,
        rank,
      };
      known.set(key, meeting);
      if (meeting.what !== what)
        differing.set(meeting, (differing.get(meeting) ?? new Map<number, string>()).set(rank, what));
      meeting.positions.set(rank, position);
      meeting.work = Math.max(meeting.work, work);
      meeting.first = Math.min(meeting.first, position);
      return meeting;
    });
  });
  const all = [...known.values()];
  const unfit = all.filter((meeting) => differing.has(meeting) || meeting.positions.size < meeting.expected.length);
  // What comes first in a trace: later ones often differ only because it is there.
  const [first] = unfit.toSorted((a, b) => a.first - b.first || a.rank - b.rank);
  if (first !== undefined) throw differenceAt(first, differing.get(first) ?? new Map());
  ranks.forEach(({ collectives }, rank) =>
    collectives.forEach(({ after }, position) => {
      for (const before of after) ofRank[rank]![position]!.after.add(ofRank[rank]![before]!);
    }),
  );
  return all;
};

/** Set every meeting's depth: the most meetings on a path to it. @throws CollectiveOrderError that names a circle. */
const settleDepths = (all: readonly Meeting[]): void => {
  const waiting = new Map(all.map((meeting) => [meeting, meeting.after.size]));
  const next = new Map<Meeting, Meeting[]>(all.map((meeting) => [meeting, []]));
  for (const meeting of all) for (const before of meeting.after) next.get(before)!.push(meeting);
  const ready = all.filter(({ after }) => after.size === 0);
  for (let meeting = ready.pop(); meeting !== undefined; meeting = ready.pop()) {
    waiting.delete(meeting);
    for (const later of next.get(meeting)!) {
      later.depth = Math.max(later.depth, meeting.depth + 1);
      const left = waiting.get(later)! - 1;
      waiting.set(later, left);
      if (left === 0) ready.push(later);
    }
  }
  if (waiting.size === 0) return;
  const path: Meeting[] = [];
  let at = [...waiting.keys()][0]!;
  for (; !path.includes(at); at = [...at.after].find((before) => waiting.has(before))!) path.push(at);
  const circle = path.slice(path.indexOf(at));
  const steps = circle.map((meeting, i) => {
    const before = circle[(i + 1) % circle.length]!;
    const rank = [...meeting.positions.keys()].find((one) => before.positions.has(one))!;
    return `rank ${rank} needs ${before.what} (${before.count} of its group) before ${meeting.what} (${meeting.count} of its group)`;
  });
  throw new CollectiveOrderError(`collectives wait for each other in a circle: ${steps.join("; ")}`);
};

/** All collectives of a world in their canonical order. @throws CollectiveOrderError as `canonicalOrder` does. */
export const meetingsInOrder = (ranks: readonly RankCollectives[]): Meeting[] => {
  const all = meetingsOf(ranks);
  settleDepths(all);
  return all.sort((a, b) => a.depth - b.depth || a.work - b.work || a.first - b.first || a.rank - b.rank);
};

/**
 * The canonical order of collectives: one order of all collectives of a world that every rank keeps to, as far as they
 * are its own. It is a function of all ranks' graphs, so ranks whose graphs differ compute it alike.
 *
 * Collectives of a group are the same on two ranks when they come at the same place of its trace; a `send-receive` when
 * its pairs are the same too, and only the ranks that it names need have it. A collective comes after all that any rank
 * needs for it; among those free to go, by the most collectives on a path to it, then by the most work that a rank has
 * before it, then by its place in the trace.
 *
 * Ranks that start their collectives in this order cannot wait for each other in a circle: of those not done the first
 * in the order waits for none.
 *
 * Cost: O(collectives of all ranks · those they wait for).
 *
 * @param ranks of all ranks of the world, in order.
 * @returns for each rank, positions in its list in the order of their starts.
 * @throws CollectiveOrderError where ranks have different collectives in one place, or where no order suits all.
 */
export const canonicalOrder = (ranks: readonly RankCollectives[]): number[][] => {
  const orders: number[][] = ranks.map(() => []);
  for (const { positions } of meetingsInOrder(ranks))
    for (const [rank, position] of positions) orders[rank]!.push(position);
  return orders;
};
