import { ArgumentError } from "../../errors.ts";
import { type Graph, type Node, specOf, type ValueRef, valueKey } from "../../graph/graph.ts";
import { isUserOperator } from "../../graph/operator.ts";
import { isCollective } from "../../passes/collective-order.ts";
import { hasEffect } from "../../passes/dead-code.ts";
import { formatSpec } from "../../shape.ts";
import { roleOf } from "../../ops/role.ts";
import { nodesWithin } from "./slice-graph.ts";

/** Values at which the graph of a training step is cut into stages. */
export interface Cuts {
  /** Names and values of each cut, in the order of the forward pass. */
  readonly cuts: readonly { readonly names: readonly string[]; readonly values: readonly ValueRef[] }[];
  readonly loss: ValueRef;
  readonly aux: readonly ValueRef[];
  /** Cotangents and gradients: values that only the backward pass computes. */
  readonly back: readonly ValueRef[];
  /** Number of leading inputs of the graph that are parameters. */
  readonly numParams: number;
}

export interface Assignment {
  /** Stage number of each forward node; `undefined` for backward nodes and free nodes. */
  readonly stageOf: readonly (number | undefined)[];
  /** Whether each node is free: a free node is computed in each stage that reads the node. */
  readonly isFree: readonly boolean[];
  /** Returns the number of the stage whose forward pass returns the given value. */
  readonly homeOf: (ref: ValueRef) => number;
}

/** Describes a value of a graph for messages. */
export const nameOf = (graph: Graph, ref: ValueRef): string => {
  const { op, scope } = graph.nodes[ref.node]!;
  return `${op} ${formatSpec(specOf(graph, ref))}${scope === "" ? "" : ` in ${scope}`}`;
};

/**
 * Finds the free nodes, which depend only on parameters, or only on further arguments: for example, a cast weight, a
 * mask, a key. A free node belongs to no stage, because every stage that reads the node also has the node's operands. A
 * node that depends on parameters and arguments belongs to a stage.
 */
const freeNodes = (graph: Graph, numParams: number, isCut: (ref: ValueRef) => boolean): boolean[] => {
  const position = new Map(graph.inputs.map((id, i) => [id, i]));
  const mayRepeat = (node: Node): boolean =>
    [undefined, "position", "barrier"].includes(roleOf(node)) &&
    !isUserOperator(node.op) &&
    !isCollective(node) &&
    !hasEffect(node);
  const bits = { param: 1, argument: 2 } as const;
  const dependencies: (number | undefined)[] = [];
  for (const node of graph.nodes) {
    const index = position.get(node.id);
    if (index !== undefined) dependencies.push(index < numParams ? bits.param : bits.argument);
    else {
      const parts = node.inputs.map((ref) => (isCut(ref) ? undefined : dependencies[ref.node]));
      const all = parts.reduce<number>((sum, part) => sum | (part ?? 0), 0);
      const free = mayRepeat(node) && !parts.includes(undefined) && all !== (bits.param | bits.argument);
      dependencies.push(free && !isCut({ node: node.id, output: 0 }) ? all : undefined);
    }
  }
  return dependencies.map((part) => part !== undefined);
};

/**
 * Assigns a stage to each node of the forward pass: the first stage whose cut or loss depends on the node. A node on
 * which only auxiliary results or the backward pass depend is assigned to the stage of its operands.
 *
 * @throws ArgumentError if a value is read across a cut, or if cuts are out of order. The message names the value or
 * the cuts.
 */
export const assignStages = (graph: Graph, { cuts, loss, aux, back, numParams }: Cuts): Assignment => {
  const last = cuts.length;
  const cutOf = new Map(cuts.flatMap(({ values }, k) => values.map((ref, i) => [valueKey(ref), { k, i }] as const)));
  const isFree = freeNodes(graph, numParams, (ref) => cutOf.has(valueKey(ref)));
  const stageOf: (number | undefined)[] = graph.nodes.map(() => undefined);
  const formatCut = (k: number): string => cuts[k]!.names.map((name) => `"${name}"`).join(" and ");

  /** Throws the error for a value that is read across a cut. @param found Number of the stage that has the value. */
  const refuse = (ref: ValueRef, found: number, reader: Node, stage: number): never => {
    const cut = cutOf.get(valueKey(ref));
    const value = cut === undefined ? nameOf(graph, ref) : `"${cuts[cut.k]!.names[cut.i]}" (${nameOf(graph, ref)})`;
    const read = `read by ${nameOf(graph, { node: reader.id, output: 0 })}`;
    if (found > stage)
      throw new ArgumentError(
        `cutStages: ${value} comes after the cut ${formatCut(found - 1)}, but is ${read}, which ${formatCut(stage)} depends on; name cuts in the order in which they are computed`,
      );
    throw new ArgumentError(
      `cutStages: ${formatCut(stage - 1)} does not separate the stages: ${value} is computed before it and ${read} after it; tap that value ${cut === undefined ? "" : "again, under another name, "}and name it in the cut as well, as in cuts: [[…, "${cuts[stage - 1]!.names[0]}", "past-it"]], or cut elsewhere`,
    );
  };

  const lower = (ref: ValueRef, stage: number): void => {
    stageOf[ref.node] = Math.min(stageOf[ref.node] ?? last, stage);
  };
  cuts.forEach(({ values }, k) => {
    for (const ref of values) lower(ref, k);
  });
  if (!isFree[loss.node]) lower(loss, last);
  /** Checks that the stage of a node has all values that the node reads. */
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

  /** Number of the last stage that reads each free node. */
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
  /**
   * Range of stages that have all operands of a node, by node id. Contains only nodes on which no cut and no loss
   * depends.
   */
  const open = new Map<number, { readonly first: number; readonly end: number; readonly anywhere: boolean }>();
  for (const node of graph.nodes) {
    const isForward = isAux.has(node.id) || (node.phase !== "backward" && (isLive.has(node.id) || hasEffect(node)));
    if (!isForward || isFree[node.id]! || stageOf[node.id] !== undefined) continue;
    const ranges = node.inputs.map((ref) => {
      if (isFree[ref.node]!) return { first: 0, end: last, anywhere: true };
      const cut = cutOf.get(valueKey(ref)); // both adjacent stages have the value
      if (cut !== undefined) return { first: cut.k, end: cut.k + 1, anywhere: false };
      const stage = stageOf[ref.node];
      return stage === undefined ? open.get(ref.node) : { first: stage, end: stage, anywhere: false };
    });
    if (ranges.includes(undefined)) continue; // the node depends on cotangents
    const first = Math.max(0, ...ranges.map((range) => range!.first));
    const end = Math.max(first, Math.min(last, ...ranges.map((range) => range!.end)));
    open.set(node.id, { first, end, anywhere: ranges.every((range) => range!.anywhere) });
  }
  for (const id of [...open.keys()].reverse()) {
    const { first, end, anywhere } = open.get(id)!;
    const node = graph.nodes[id]!;
    // If every stage is possible, choose the last stage that reads the operands of the node.
    const preferred = stageOf[id] ?? (anywhere ? Math.max(...node.inputs.map((ref) => home[ref.node]!), first) : end);
    const stage = Math.min(end, Math.max(first, preferred));
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
