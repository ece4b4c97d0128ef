import { type Graph, GraphBuilder, type Node } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";

const isCollective = (node: Node): boolean =>
  operators[node.op]?.collective !== undefined && node.op !== "axis-index" && node.op !== "collective-start";

interface Collective {
  readonly id: number;
  /** Nodes that must run first, ascending. */
  readonly ancestors: readonly number[];
  /** Most collectives on a path to this one. */
  readonly depth: number;
  /** Flops and bytes of the ancestors: how late it can start at the soonest. */
  readonly work: number;
}

const workOf = (graph: Graph, node: Node): number => {
  const specs = node.inputs.map((ref) => graph.nodes[ref.node]!.specs[ref.output]!);
  const cost = operators[node.op]?.cost(specs, node.specs, node.params);
  return cost === undefined ? 0 : cost.flops + cost.bytesRead + cost.bytesWritten;
};

const describe = (graph: Graph, collectives: readonly Node[]): Collective[] => {
  const depths = new Map<number, number>();
  return collectives.map(({ id }) => {
    const seen = new Set<number>();
    const stack = [id];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      for (const ref of graph.nodes[at]!.inputs) {
        if (seen.has(ref.node)) continue;
        seen.add(ref.node);
        stack.push(ref.node);
      }
    }
    const ancestors = [...seen].sort((a, b) => a - b);
    const depth = ancestors.reduce((most, ancestor) => Math.max(most, (depths.get(ancestor) ?? -1) + 1), 0);
    depths.set(id, depth);
    return { id, ancestors, depth, work: ancestors.reduce((sum, ancestor) => sum + workOf(graph, graph.nodes[ancestor]!), 0) };
  });
};

/**
 * An order of all nodes in which collectives start as soon as they can and are waited for as late as they can.
 *
 * Collectives are issued by depth, then by the work before them. Before each comes what it needs and nothing else, but
 * for nodes that no collective needs, which keep their place; what needs none of those under way comes first, then what needs the
 * first of them alone, and so on: where all-gathers of a step's first parameters are followed by its forward pass, each layer runs as
 * soon as its own parameters are there. In the end comes the rest, in the same way: parameters of the bucket that left first are
 * updated while later buckets are under way.
 */
const orderNodes = (graph: Graph, collectives: readonly Collective[]): number[] => {
  const order: number[] = [];
  const issue = new Map(collectives.map(({ id }, index) => [id, index]));
  const needed = new Set(collectives.flatMap(({ id, ancestors }) => [id, ...ancestors]));
  const users: number[][] = graph.nodes.map(() => []);
  const missing = graph.nodes.map((node) => node.inputs.length);
  for (const node of graph.nodes) for (const ref of node.inputs) users[ref.node]!.push(node.id);
  const emitted = new Set<number>();
  const finished = new Set<number>();
  const ready: number[] = [];
  // The last collective, in the order of issue, that a node has to wait for. It never falls along an edge, so to sort by it keeps inputs first.
  const lastNeed: number[] = [];
  for (const node of graph.nodes)
    lastNeed.push(Math.max(-1, ...node.inputs.map((ref) => Math.max(lastNeed[ref.node]!, issue.get(ref.node) ?? -1))));
  const byNeed = (a: number, b: number): number => lastNeed[a]! - lastNeed[b]! || a - b;

  const release = (id: number): void => {
    for (const user of users[id]!) if (--missing[user]! === 0 && !needed.has(user)) ready.push(user);
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
    for (;;) {
      const first = Math.min(...ready);
      if (!(first < id)) return;
      ready.splice(ready.indexOf(first), 1);
      if (!emitted.has(first)) emit(first);
    }
  };

  for (const id of graph.inputs) emit(id);
  for (const node of graph.nodes) if (node.inputs.length === 0 && !needed.has(node.id) && node.op !== "input") ready.push(node.id);
  for (const collective of collectives) {
    for (const id of collective.ancestors.toSorted(byNeed)) {
      if (emitted.has(id)) continue;
      emitReadyBefore(id);
      emit(id);
    }
    emit(collective.id);
  }

  const rest = graph.nodes.filter((node) => !emitted.has(node.id)).map((node) => node.id);
  return [...order, ...rest.sort(byNeed)];
};

/**
 * Split every collective into `collective-start`, directly after what it needs, and `collective-done`, directly before the first node
 * that reads a result, and move independent computation between them (see `orderNodes`). With one bucket per
 * tensor this is wait-free backpropagation. `axis-index` moves no bytes and stays as it is.
 *
 * The order depends on the graph alone, so all ranks start the same collectives in the same order.
 *
 * Cost: O(collectives · (nodes + edges)).
 */
export const scheduleCollectives = (graph: Graph): Graph => {
  const found = graph.nodes.filter(isCollective);
  if (found.length === 0) return graph;
  const collectives = describe(graph, found).sort((a, b) => a.depth - b.depth || a.work - b.work || a.id - b.id);
  return splitCollectives(graph, orderNodes(graph, collectives));
};

/**
 * Split every collective into start and done where it stands, so that each is waited for before anything else is computed: bulk-synchronous
 * communication, to compare overlap with. `scheduleCollectives` leaves such a graph as it is.
 */
export const blockOnCollectives = (graph: Graph): Graph =>
  splitCollectives(
    graph,
    graph.nodes.map(({ id }) => id),
    true,
  );

/** @param atOnce wait for each collective directly after its start. */
const splitCollectives = (graph: Graph, order: readonly number[], atOnce = false): Graph => {
  const builder = new GraphBuilder();
  const running = new Map<number, number>();

  const finish = (node: Node): void => {
    const start = running.get(node.id);
    if (start === undefined) return;
    running.delete(node.id);
    const results = node.specs.map((_, output) => ({ node: start, output }));
    const done = builder.add({
      op: "collective-done",
      inputs: results,
      params: builder.nodes[start]!.params,
      specs: node.specs,
      scope: node.scope,
    });
    node.specs.forEach((_, output) => builder.map({ node: node.id, output }, { node: done, output }));
  };
  for (const id of order) {
    const node = graph.nodes[id]!;
    for (const ref of node.inputs) finish(graph.nodes[ref.node]!);
    if (isCollective(node)) {
      const inputs = node.inputs.map((ref) => builder.resolve(ref));
      running.set(
        id,
        builder.add({
          op: "collective-start",
          inputs,
          params: { ...node.params, collective: node.op },
          specs: node.specs,
          scope: node.scope,
        }),
      );
      if (atOnce) finish(node);
    } else builder.copy(node);
  }
  for (const id of running.keys()) finish(graph.nodes[id]!);
  return builder.finish(graph);
};
