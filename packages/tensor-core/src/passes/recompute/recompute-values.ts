import { type Graph, type GraphBuilder, type Node, type ValueRef, valueKey } from "../../graph/graph.ts";
import { roleOf } from "../../ops/role.ts";
import { isCollective } from "../collective-order.ts";
import { hasEffect } from "../dead-code.ts";
import { addCotangentBarrier, type BackwardReads, rewriteBackwardReads } from "./cotangent-barrier.ts";

/** Whether a node may be recomputed: true for forward nodes without communication and side effects. */
export const mayRunAgain = (node: Node): boolean =>
  node.phase === "forward" &&
  [undefined, "position", "barrier"].includes(roleOf(node)) &&
  !isCollective(node) &&
  !hasEffect(node);

/** Whether a node is a constant, such as `full` or `iota`: it has no operands, so it needs no recomputation. */
export const isLiteral = (node: Node): boolean => node.inputs.length === 0 && roleOf(node) === undefined;

/** Choice of the forward values that the backward pass recomputes. */
export interface Repetition {
  /**
   * Group name of each recomputed node; `undefined` for other nodes. Recomputing one group never runs the nodes of
   * another group again.
   */
  readonly groups: readonly (string | undefined)[];
  /** Returns whether a value of a group is kept, so that it is not recomputed. */
  readonly keeps: (ref: ValueRef) => boolean;
}

const backwardScope = (scope: string): string => (scope === "" ? "backward" : `${scope}/backward`);

/**
 * Makes backward nodes read copies of forward values. For each value of a group that is not kept, the group's nodes on
 * which the value depends are appended a second time, directly before the first backward node that reads the value. The
 * copies belong to the backward pass.
 *
 * Copies read values from outside the group through an optimization barrier that also waits for a cotangent. Therefore,
 * no pass merges a copy with its original, and no schedule moves a copy into the forward pass, where it would occupy
 * memory.
 *
 * Results do not change. Cost: O(nodes + edges).
 */
export const recomputeValues = (graph: Graph, repetition: Repetition): Graph =>
  rewriteBackwardReads(graph, (builder) => createRepeater(graph, repetition, builder));

const createRepeater = (graph: Graph, { groups, keeps }: Repetition, builder: GraphBuilder): BackwardReads => {
  const copies = new Map<string, ValueRef>();
  const barrierOutputs = new Map<string, ValueRef>();

  /** Whether the value belongs to `group` and is not kept, so that its readers use a copy. */
  const isRepeated = (ref: ValueRef, group: string | undefined): group is string =>
    group !== undefined && groups[ref.node] === group && !keeps(ref);

  /** Appends copies of the group's nodes on which the given values depend, except nodes that are already copied. */
  const repeat = (
    values: readonly ValueRef[],
    group: string,
    reader: Node,
    lastCotangent: ValueRef | undefined,
  ): void => {
    const needed = new Set<number>();
    const outside = new Map<string, ValueRef>();
    const stack = values.filter((ref) => !copies.has(`${group} ${valueKey(ref)}`)).map((ref) => ref.node);
    for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
      if (needed.has(id)) continue;
      needed.add(id);
      for (const ref of graph.nodes[id]!.inputs) {
        const key = `${group} ${valueKey(ref)}`;
        if (isRepeated(ref, group)) {
          if (!copies.has(key)) stack.push(ref.node);
        } else if (!isLiteral(graph.nodes[ref.node]!) && !barrierOutputs.has(key))
          outside.set(key, builder.resolve(ref));
      }
    }
    if (needed.size === 0) return;
    const cotangent =
      reader.inputs
        .filter((ref) => graph.nodes[ref.node]!.phase === "backward")
        .map((ref) => builder.resolve(ref))
        .sort((a, b) => b.node - a.node)[0] ?? lastCotangent;
    const origin = {
      scope: backwardScope(graph.nodes[Math.max(...needed)]!.scope),
      phase: "backward",
      region: "",
    } as const;
    if (outside.size > 0) {
      const barrier = addCotangentBarrier(builder, [...outside.values()], cotangent, origin);
      [...outside.keys()].forEach((key, output) => barrierOutputs.set(key, { node: barrier, output }));
    }
    for (const id of [...needed].sort((a, b) => a - b)) {
      const node = graph.nodes[id]!;
      const inputs = node.inputs.map((ref) => {
        const key = `${group} ${valueKey(ref)}`;
        if (isRepeated(ref, group)) return copies.get(key)!;
        return barrierOutputs.get(key) ?? builder.resolve(ref);
      });
      const copy = builder.add({ ...node, inputs, ...origin, scope: backwardScope(node.scope) });
      node.specs.forEach((_, output) =>
        copies.set(`${group} ${valueKey({ node: id, output })}`, { node: copy, output }),
      );
    }
  };

  return {
    readsOf: (node, lastCotangent) => {
      const values = Map.groupBy(
        node.inputs.filter((ref) => isRepeated(ref, groups[ref.node])),
        (ref) => groups[ref.node]!,
      );
      for (const [group, refs] of values) repeat(refs, group, node, lastCotangent);
      return node.inputs.map((ref) => {
        const group = groups[ref.node];
        return isRepeated(ref, group) ? copies.get(`${group} ${valueKey(ref)}`)! : builder.resolve(ref);
      });
    },
  };
};
