import { type Graph, type Node, specOf, type ValueRef, valueKey } from "../../graph/graph.ts";
import { operators } from "../../ops/table.ts";
import { roleOf } from "../../ops/role.ts";
import { byteLength, sameSpec } from "../../shape.ts";
import type { KeptValue } from "./stage.ts";

/** Description of a stage's forward pass, for `keptValues`. */
export interface Reads {
  /**
   * Inputs and outputs of the forward pass, by `valueKey`. The backward pass can read these values without saving them.
   */
  readonly available: ReadonlyMap<string, KeptValue>;
  /** Whether a node belongs to the stage's forward pass. */
  readonly isForward: (node: Node) => boolean;
  /**
   * Called with each value that is not kept, so that its node runs in the backward pass. Throws if the node must not
   * run in the backward pass.
   */
  readonly visit: (ref: ValueRef) => void;
}

/** Forward values that are kept for the backward pass. */
export interface Kept {
  readonly values: readonly KeptValue[];
  /**
   * For each entry of `values`, the references in the graph that the kept value replaces. A reference is to the value
   * itself, or to the result of a node that returns the value unchanged, such as a barrier.
   */
  readonly names: readonly (readonly ValueRef[])[];
  /** Values that the forward pass returns only for the backward pass. */
  readonly saved: readonly ValueRef[];
}

/**
 * Returns the original value of a value that was passed on by barriers and nodes that return their operand unchanged.
 */
export const sourceOf = (graph: Graph, ref: ValueRef, reads: Reads): ValueRef => {
  for (let current = ref; ; ) {
    const node = graph.nodes[current.node]!;
    if (reads.available.has(valueKey(current)) || !reads.isForward(node) || node.inputs.length === 0) return current;
    const facts = operators[node.op];
    const operand = roleOf(node) === "barrier" ? node.inputs[current.output]! : node.inputs[0]!;
    const passesOn =
      roleOf(node) === "barrier" ||
      (facts?.keepsOrder === true && facts.rearranges === true && node.inputs.length === 1);
    if (!passesOn || !sameSpec(specOf(graph, operand), specOf(graph, current))) return current;
    current = operand;
  }
};

/**
 * Finds the forward values that the backward pass needs to compute `outputs`: without duplicates, and without values
 * that are rearrangements of other kept values. Transposed weights, broadcast means and constants are recomputed.
 * Results of arithmetic are kept.
 *
 * @param given Cotangents of the stage's outgoing values.
 */
export const keptValues = (
  graph: Graph,
  outputs: readonly ValueRef[],
  given: ReadonlySet<string>,
  reads: Reads,
): Kept => {
  /** Keys of the forward values to save that the latest `walk` found. Only the forward pass computes these values. */
  let needed = new Set<string>();
  const isRecomputed = (ref: ValueRef): boolean => {
    const node = graph.nodes[ref.node]!;
    if (node.inputs.length === 0) return roleOf(node) === undefined || roleOf(node) === "position";
    const { rearranges, stretches } = operators[node.op] ?? {};
    if (node.inputs.length > 1 || node.specs.length > 1 || (rearranges !== true && stretches !== true)) return false;
    const operand = sourceOf(graph, node.inputs[0]!, reads);
    if (reads.available.has(valueKey(operand)) || needed.has(valueKey(operand))) return true;
    return byteLength(specOf(graph, operand)) <= byteLength(specOf(graph, ref));
  };
  const walk = (): Map<string, { readonly source: ValueRef; readonly names: ValueRef[] }> => {
    const found = new Map<string, { readonly source: ValueRef; readonly names: ValueRef[] }>();
    const seen = new Set<string>();
    const stack = [...outputs];
    for (let ref = stack.pop(); ref !== undefined; ref = stack.pop()) {
      const key = valueKey(ref);
      if (seen.has(key) || given.has(key)) continue;
      seen.add(key);
      const source = sourceOf(graph, ref, reads);
      const node = graph.nodes[source.node]!;
      const isKept = reads.available.has(valueKey(source)) || (reads.isForward(node) && !isRecomputed(source));
      if (!isKept) {
        reads.visit(ref);
        stack.push(...graph.nodes[ref.node]!.inputs);
        continue;
      }
      const known = found.get(valueKey(source));
      if (known === undefined) found.set(valueKey(source), { source, names: [ref] });
      else known.names.push(ref);
    }
    return found;
  };
  // A new kept value may make other kept values unnecessary. Each round removes values, so the loop ends.
  for (let found = walk(); ; found = walk()) {
    const own = [...found.keys()].filter((key) => !reads.available.has(key));
    if (own.length !== needed.size) {
      needed = new Set(own);
      continue;
    }
    const values = [...found.values()].sort(
      (a, b) => a.source.node - b.source.node || a.source.output - b.source.output,
    );
    const saved = values.map(({ source }) => source).filter((source) => !reads.available.has(valueKey(source)));
    return {
      values: values.map(
        ({ source }) => reads.available.get(valueKey(source)) ?? { from: "saved", index: saved.indexOf(source) },
      ),
      names: values.map(({ names }) => names),
      saved,
    };
  }
};
