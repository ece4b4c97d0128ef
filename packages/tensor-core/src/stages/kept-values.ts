import { type Graph, type Node, specOf, type ValueRef, valueKey } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";
import { roleOf } from "../ops/role.ts";
import { byteLength, sameSpec } from "../shape.ts";
import type { KeptValue } from "./stage.ts";

/** What backward of one stage reads of its forward pass. */
export interface Reads {
  /** Values that both passes have anyway, by `valueKey`: what forward is given and gives. */
  readonly atHand: ReadonlyMap<string, KeptValue>;
  /** Whether a node is of the stage's forward pass. */
  readonly isForward: (node: Node) => boolean;
  /** Told of every other node that backward would have to run: throws for what it may not. */
  readonly visit: (ref: ValueRef) => void;
}

/** What backward is given, and by which names its nodes know it. */
export interface Kept {
  readonly values: readonly KeptValue[];
  /** Per kept value, all values that are equal to it. */
  readonly names: readonly (readonly ValueRef[])[];
  /** What forward returns for backward alone. */
  readonly saved: readonly ValueRef[];
}

/** The value that a value is the same as: through barriers, and what returns its operand as it is. */
export const sourceOf = (graph: Graph, ref: ValueRef, reads: Reads): ValueRef => {
  for (let at = ref; ; ) {
    const node = graph.nodes[at.node]!;
    if (reads.atHand.has(valueKey(at)) || !reads.isForward(node) || node.inputs.length === 0) return at;
    const facts = operators[node.op];
    const operand = roleOf(node) === "barrier" ? node.inputs[at.output]! : node.inputs[0]!;
    const passesOn =
      roleOf(node) === "barrier" ||
      (facts?.keepsOrder === true && facts.rearranges === true && node.inputs.length === 1);
    if (!passesOn || !sameSpec(specOf(graph, operand), specOf(graph, at))) return at;
    at = operand;
  }
};

/**
 * Find what backward must be given of forward to compute `outputs`: nothing twice, and nothing that it can lay out
 * again from what it is given. A transposed weight, a stretched mean and a constant are made anew, whatever computes is
 * kept.
 *
 * @param given what is carried back to the stage.
 */
export const keptValues = (
  graph: Graph,
  outputs: readonly ValueRef[],
  given: ReadonlySet<string>,
  reads: Reads,
): Kept => {
  /** What forward alone has, as far as it was found to be needed. */
  let needed = new Set<string>();
  const isMadeAgain = (ref: ValueRef): boolean => {
    const node = graph.nodes[ref.node]!;
    if (node.inputs.length === 0) return roleOf(node) === undefined || roleOf(node) === "position";
    const { rearranges, stretches } = operators[node.op] ?? {};
    if (node.inputs.length > 1 || node.specs.length > 1 || (rearranges !== true && stretches !== true)) return false;
    const operand = sourceOf(graph, node.inputs[0]!, reads);
    if (reads.atHand.has(valueKey(operand)) || needed.has(valueKey(operand))) return true;
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
      const isKept = reads.atHand.has(valueKey(source)) || (reads.isForward(node) && !isMadeAgain(source));
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
  // What was found may make other values needless; each round takes values away, so the rounds end.
  for (let found = walk(); ; found = walk()) {
    const own = [...found.keys()].filter((key) => !reads.atHand.has(key));
    if (own.length !== needed.size) {
      needed = new Set(own);
      continue;
    }
    const values = [...found.values()].sort(
      (a, b) => a.source.node - b.source.node || a.source.output - b.source.output,
    );
    const saved = values.map(({ source }) => source).filter((source) => !reads.atHand.has(valueKey(source)));
    return {
      values: values.map(
        ({ source }) => reads.atHand.get(valueKey(source)) ?? { from: "saved", index: saved.indexOf(source) },
      ),
      names: values.map(({ names }) => names),
      saved,
    };
  }
};
