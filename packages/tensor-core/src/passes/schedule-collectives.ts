import { ArgumentError } from "../errors.ts";
import { type Graph, GraphBuilder, type Node, originOf } from "../graph/graph.ts";
import { collectiveDoneName } from "../ops/collective-done.ts";
import { collectiveStartName } from "../ops/collective-start.ts";
import { roleOf } from "../ops/role.ts";
import { canonicalOrder, collectivesOf, isCollective } from "./collective-order.ts";

/**
 * Orders all nodes so that collectives start as early as possible and are waited for as late as possible.
 *
 * Collectives start in the given order. Each collective is preceded only by the nodes on which it depends, and by ready
 * nodes on which no collective depends, at their position in the trace. The nodes on which a collective depends are
 * sorted by the last collective in progress on which each node depends; nodes that do not depend on a collective in
 * progress come first. For example, if all-gathers of parameters precede the forward pass, each layer runs as soon as
 * its parameters are available. All remaining nodes come last, in the same order: parameters of the first gradient
 * bucket are updated while later buckets are in progress.
 */
const orderNodes = (graph: Graph, collectives: readonly number[]): number[] => {
  const order: number[] = [];
  const issue = new Map(collectives.map((id, index) => [id, index]));
  const needed = new Set(collectives);
  for (const node of graph.nodes.toReversed())
    if (needed.has(node.id)) for (const ref of node.inputs) needed.add(ref.node);
  const users: number[][] = graph.nodes.map(() => []);
  const missing = graph.nodes.map((node) => node.inputs.length);
  for (const node of graph.nodes) for (const ref of node.inputs) users[ref.node]!.push(node.id);
  const emitted = new Set<number>();
  const finished = new Set<number>();
  const isReady = new Uint8Array(graph.nodes.length);
  let firstReady = 0; // no pending node with a lower id is ready
  // Last collective, in start order, on which each node depends. Never decreases along an edge, so a stable sort by
  // this value keeps operands before their readers.
  const lastNeed: number[] = [];
  for (const node of graph.nodes)
    lastNeed.push(Math.max(-1, ...node.inputs.map((ref) => Math.max(lastNeed[ref.node]!, issue.get(ref.node) ?? -1))));
  const byNeed = (a: number, b: number): number => lastNeed[a]! - lastNeed[b]! || a - b;

  const makeReady = (id: number): void => {
    isReady[id] = 1;
    firstReady = Math.min(firstReady, id);
  };
  const release = (id: number): void => {
    for (const user of users[id]!) if (--missing[user]! === 0 && !needed.has(user)) makeReady(user);
  };
  const emit = (id: number): void => {
    for (const { node } of graph.nodes[id]!.inputs) {
      if (!issue.has(node) || finished.has(node)) continue;
      finished.add(node);
      release(node);
    }
    order.push(id);
    emitted.add(id);
    if (!issue.has(id)) release(id);
  };
  const emitReadyBefore = (id: number): void => {
    while (firstReady < id) {
      const at = firstReady++;
      if (isReady[at] === 0) continue;
      isReady[at] = 0;
      if (!emitted.has(at)) emit(at);
    }
  };
  /** Returns the ancestors of a node that are not emitted yet. All ancestors of an emitted node are already emitted. */
  const pendingAncestors = (id: number): number[] => {
    const found = new Set<number>();
    const stack = [id];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      for (const { node } of graph.nodes[at]!.inputs) {
        if (emitted.has(node) || found.has(node)) continue;
        found.add(node);
        stack.push(node);
      }
    }
    return [...found].sort(byNeed);
  };

  for (const id of graph.inputs) emit(id);
  for (const node of graph.nodes)
    if (node.inputs.length === 0 && !needed.has(node.id) && roleOf(node) !== "argument") makeReady(node.id);
  for (const [at, collective] of collectives.entries()) {
    for (const id of pendingAncestors(collective)) {
      if (issue.get(id)! > at)
        throw new ArgumentError(
          `an order starts collective ${collective} before ${id}, which it needs; use canonicalOrder`,
        );
      if (emitted.has(id)) continue;
      emitReadyBefore(id);
      emit(id);
    }
    emit(collective);
  }

  const rest = graph.nodes.filter((node) => !emitted.has(node.id)).map((node) => node.id);
  return [...order, ...rest.sort(byNeed)];
};

/**
 * Splits each collective into `collective-start`, directly after the nodes on which it depends, and `collective-done`,
 * directly before the first node that reads a result. Independent computation moves between start and done (see
 * `orderNodes`). With one bucket per tensor, this schedule is wait-free backpropagation.
 *
 * @param order Indices of the graph's collectives in start order. Default: the canonical order if all ranks have this
 * graph. If graphs differ between ranks, `canonicalOrder` computes the order of each rank.
 * @throws ArgumentError if the order does not match this graph's collectives, or starts a collective before another
 * collective on which it depends.
 * Cost: O(n log n) for n nodes and edges; without an order, also the cost of `collectivesOf`.
 */
export const scheduleCollectives = (graph: Graph, order?: readonly number[]): Graph => {
  const found = graph.nodes.filter(isUnsplit);
  if (found.length === 0) return graph;
  const positions = order ?? canonicalOrder([{ axes: {}, collectives: collectivesOf(graph, found) }])[0]!;
  if (
    positions.length !== found.length ||
    new Set(positions).size !== found.length ||
    positions.some((position) => found[position] === undefined)
  )
    throw new ArgumentError(
      `an order of ${positions.length} collectives, ${positions.join()}, was given for a graph of ${found.length}; pass each of 0 to ${found.length - 1} once`,
    );
  return splitCollectives(
    graph,
    orderNodes(
      graph,
      positions.map((position) => found[position]!.id),
    ),
  );
};

const isUnsplit = (node: Node): boolean => isCollective(node) && roleOf(node) !== "start";

/**
 * Splits each collective into start and done at its position in the trace, without computation between start and done:
 * bulk-synchronous communication, as a baseline for overlap. `scheduleCollectives` does not change such a graph.
 */
export const blockOnCollectives = (graph: Graph): Graph =>
  splitCollectives(
    graph,
    graph.nodes.map(({ id }) => id),
    true,
  );

/**
 * Splits each collective into start and done. @param atOnce Whether to wait for each collective directly after its
 * start.
 */
const splitCollectives = (graph: Graph, order: readonly number[], atOnce = false): Graph => {
  const builder = new GraphBuilder();
  const running = new Map<number, number>();
  const positions = new Map(graph.nodes.filter(isUnsplit).map(({ id }, position) => [id, position]));

  const finish = (node: Node): void => {
    const start = running.get(node.id);
    if (start === undefined) return;
    running.delete(node.id);
    const results = node.specs.map((_, output) => ({ node: start, output }));
    const done = builder.add({
      op: collectiveDoneName,
      inputs: results,
      params: builder.nodes[start]!.params,
      specs: node.specs,
      ...originOf(node),
    });
    node.specs.forEach((_, output) => builder.map({ node: node.id, output }, { node: done, output }));
  };
  for (const id of order) {
    const node = graph.nodes[id]!;
    for (const ref of node.inputs) finish(graph.nodes[ref.node]!);
    if (isUnsplit(node)) {
      const inputs = node.inputs.map((ref) => builder.resolve(ref));
      running.set(
        id,
        builder.add({
          op: collectiveStartName,
          inputs,
          params: {
            ...node.params,
            collective: node.op,
            position: positions.get(id)!,
            ...(atOnce && { standing: true }),
          },
          specs: node.specs,
          ...originOf(node),
        }),
      );
      if (atOnce) finish(node);
    } else builder.copy(node);
  }
  for (const id of running.keys()) finish(graph.nodes[id]!);
  return builder.finish(graph);
};
