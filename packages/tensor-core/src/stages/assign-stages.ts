import { ArgumentError } from "../errors.ts";
import { type Graph, type Node, specOf, type ValueRef, valueKey } from "../graph/graph.ts";
import { isUsersOperator } from "../graph/operator.ts";
import { isCollective } from "../passes/collective-order.ts";
import { hasEffect } from "../passes/dead-code.ts";
import { formatSpec } from "../shape.ts";
import { roleOf } from "../ops/role.ts";
import { nodesWithin } from "./slice-graph.ts";

/** What a step is cut at, in values of its graph. */
export interface Cuts {
  /** Names and values of each cut, in order. */
  readonly cuts: readonly { readonly names: readonly string[]; readonly values: readonly ValueRef[] }[];
  readonly loss: ValueRef;
  readonly aux: readonly ValueRef[];
  /** Values that only backward computes: what is carried back. */
  readonly back: readonly ValueRef[];
  /** The first so many inputs of the graph are parameters. */
  readonly numParams: number;
}

export interface Assignment {
  /** Per node of the forward pass its stage; `undefined` for what belongs to backward, or to no stage alone. */
  readonly stageOf: readonly (number | undefined)[];
  /** Nodes that each stage that reads them computes for itself. */
  readonly isFree: readonly boolean[];
  /** Of a result: the stage that gives it. */
  readonly homeOf: (ref: ValueRef) => number;
}

/** A value in words. */
export const nameOf = (graph: Graph, ref: ValueRef): string => {
  const { op, scope } = graph.nodes[ref.node]!;
  return `${op} ${formatSpec(specOf(graph, ref))}${scope === "" ? "" : ` in ${scope}`}`;
};

/**
 * Nodes that follow from parameters alone, or from further arguments alone: a cast weight, a mask, a key. They belong
 * to no stage, since each that reads them has what they are made of. What mixes both is the work of a stage.
 */
const freeNodes = (graph: Graph, numParams: number, isCut: (ref: ValueRef) => boolean): boolean[] => {
  const position = new Map(graph.inputs.map((id, i) => [id, i]));
  const mayRepeat = (node: Node): boolean =>
    [undefined, "position", "barrier"].includes(roleOf(node)) &&
    !isUsersOperator(node.op) &&
    !isCollective(node) &&
    !hasEffect(node);
  const made = { param: 1, argument: 2 } as const;
  const of: (number | undefined)[] = [];
  for (const node of graph.nodes) {
    const index = position.get(node.id);
    if (index !== undefined) of.push(index < numParams ? made.param : made.argument);
    else {
      const parts = node.inputs.map((ref) => (isCut(ref) ? undefined : of[ref.node]));
      const all = parts.reduce<number>((sum, part) => sum | (part ?? 0), 0);
      const free = mayRepeat(node) && !parts.includes(undefined) && all !== (made.param | made.argument);
      of.push(free && !isCut({ node: node.id, output: 0 }) ? all : undefined);
    }
  }
  return of.map((part) => part !== undefined);
};

/**
 * Find the stage of each node of the forward pass: a node is computed where it is first needed for a cut or the loss.
 * What only further results or backward need is computed where its operands are.
 *
 * @throws ArgumentError that names the value which leaks past a cut, or the cuts whose order is another.
 */
export const assignStages = (graph: Graph, { cuts, loss, aux, back, numParams }: Cuts): Assignment => {
  const last = cuts.length;
  const cutOf = new Map(cuts.flatMap(({ values }, k) => values.map((ref, i) => [valueKey(ref), { k, i }] as const)));
  const isFree = freeNodes(graph, numParams, (ref) => cutOf.has(valueKey(ref)));
  const stageOf: (number | undefined)[] = graph.nodes.map(() => undefined);
  const shown = (k: number): string => cuts[k]!.names.map((name) => `"${name}"`).join(" and ");

  /** @param found the stage that the value is at hand in. */
  const refuse = (ref: ValueRef, found: number, reader: Node, stage: number): never => {
    const cut = cutOf.get(valueKey(ref));
    const value = cut === undefined ? nameOf(graph, ref) : `"${cuts[cut.k]!.names[cut.i]}" (${nameOf(graph, ref)})`;
    const read = `read by ${nameOf(graph, { node: reader.id, output: 0 })}`;
    if (found > stage)
      throw new ArgumentError(
        `cutStages: ${value} comes behind the cut ${shown(found - 1)}, but is ${read}, which ${shown(stage)} is computed of; name cuts in the order in which they are computed`,
      );
    throw new ArgumentError(
      `cutStages: ${shown(stage - 1)} is no cut: ${value} is computed before it and ${read} behind it; tap that value ${cut === undefined ? "" : "again, under another name, "}and name it in the cut as well, as in cuts: [[…, "${cuts[stage - 1]!.names[0]}", "past-it"]], or cut elsewhere`,
    );
  };

  const lower = (ref: ValueRef, stage: number): void => {
    stageOf[ref.node] = Math.min(stageOf[ref.node] ?? last, stage);
  };
  cuts.forEach(({ values }, k) => {
    for (const ref of values) lower(ref, k);
  });
  if (!isFree[loss.node]) lower(loss, last);
  /** Check what a node reads of others. */
  const check = (node: Node, stage: number): void => {
    for (const ref of node.inputs) {
      if (isFree[ref.node]!) continue;
      const cut = cutOf.get(valueKey(ref));
      const found = stageOf[ref.node]!;
      if (cut === undefined ? found !== stage : cut.k !== stage && cut.k !== stage - 1)
        refuse(ref, cut === undefined || cut.k < stage ? found : cut.k + 1, node, stage);
    }
  };
  for (const node of graph.nodes.toReversed()) {
    const stage = stageOf[node.id];
    if (stage === undefined) continue;
    for (const ref of node.inputs) if (!isFree[ref.node]! && !cutOf.has(valueKey(ref))) lower(ref, stage);
  }
  for (const node of graph.nodes) if (stageOf[node.id] !== undefined) check(node, stageOf[node.id]!);

  /** Of free values: the last stage that reads them. */
  const home: number[] = graph.nodes.map(() => 0);
  for (const node of graph.nodes.toReversed()) {
    const stage = isFree[node.id]! ? home[node.id]! : stageOf[node.id];
    if (stage === undefined) continue;
    for (const ref of node.inputs) if (isFree[ref.node]!) home[ref.node] = Math.max(home[ref.node]!, stage);
  }
  for (const node of graph.nodes)
    if (isFree[node.id]! && node.inputs.length > 0)
      home[node.id] = Math.max(home[node.id]!, ...node.inputs.map((ref) => home[ref.node]!));

  const isAux = nodesWithin(graph, aux, () => false);
  const isLive = nodesWithin(graph, [...back, ...aux], () => false);
  /** Of nodes that no cut and no loss needs: the stages in which all that they read is at hand. */
  const open = new Map<number, { readonly first: number; readonly end: number; readonly anywhere: boolean }>();
  for (const node of graph.nodes) {
    const isForward = isAux.has(node.id) || (node.phase !== "backward" && (isLive.has(node.id) || hasEffect(node)));
    if (!isForward || isFree[node.id]! || stageOf[node.id] !== undefined) continue;
    const ranges = node.inputs.map((ref) => {
      if (isFree[ref.node]!) return { first: 0, end: last, anywhere: true };
      const cut = cutOf.get(valueKey(ref)); // at hand on both sides
      if (cut !== undefined) return { first: cut.k, end: cut.k + 1, anywhere: false };
      const stage = stageOf[ref.node];
      return stage === undefined ? open.get(ref.node) : { first: stage, end: stage, anywhere: false };
    });
    if (ranges.includes(undefined)) continue; // it follows from what is carried back
    const first = Math.max(0, ...ranges.map((range) => range!.first));
    const end = Math.max(first, Math.min(last, ...ranges.map((range) => range!.end)));
    open.set(node.id, { first, end, anywhere: ranges.every((range) => range!.anywhere) });
  }
  for (const id of [...open.keys()].reverse()) {
    const { first, end, anywhere } = open.get(id)!;
    const node = graph.nodes[id]!;
    // Where it may be anywhere, with the stage that has what it is made of.
    const wanted = stageOf[id] ?? (anywhere ? Math.max(...node.inputs.map((ref) => home[ref.node]!), first) : end);
    const stage = Math.min(end, Math.max(first, wanted));
    stageOf[id] = stage;
    for (const ref of node.inputs) if (open.has(ref.node)) lower(ref, stage);
  }
  for (const id of open.keys()) check(graph.nodes[id]!, stageOf[id]!);
  return {
    stageOf,
    isFree,
    homeOf: (ref) => cutOf.get(valueKey(ref))?.k ?? stageOf[ref.node] ?? home[ref.node]!,
  };
};
