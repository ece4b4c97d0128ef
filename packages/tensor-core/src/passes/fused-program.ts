import type { DType } from "../dtype.ts";
import { type Graph, type GraphBuilder, type Node, specOf, type ValueRef, valueKey } from "../graph/graph.ts";
import type { FusedInstruction } from "../ops/fused.ts";
import { elementCount, rowMajorStrides, sameShape, type Shape } from "../shape.ts";
import { collapse, type Extents, extentsOf, refine, refineStrides, sizesOf, stretchedStrides } from "./iteration-space.ts";

/** What an elementwise node reads in place of one of its inputs: a number, or a value through a view. */
export type Load =
  | { readonly kind: "constant"; readonly value: number | string; readonly dtype: DType }
  | { readonly kind: "value"; readonly ref: ValueRef; readonly shape: Shape; readonly strides: readonly number[] };

/** The loads of one elementwise node, and the walk over its elements that follows all of them. */
export interface Loads {
  readonly extents: Extents;
  readonly list: readonly Load[];
}

/** Follow reshapes up to the value that they show. */
const behindReshapes = (graph: Graph, ref: ValueRef): ValueRef => {
  let at = ref;
  for (let node = graph.nodes[at.node]!; node.op === "reshape"; node = graph.nodes[at.node]!) at = node.inputs[0]!;
  return at;
};

const constantLoad = (node: Node): Load => ({
  kind: "constant",
  value: node.params["value"] as number | string,
  dtype: node.specs[0]!.dtype,
});

/** Look behind reshapes, constants and stretched operands, as far as one walk can follow. */
export const loadsOf = (graph: Graph, node: Node): Loads => {
  const { shape } = node.specs[0]!;
  let extents = extentsOf(shape);
  const list = node.inputs.map((input): Load => {
    const ref = behindReshapes(graph, input);
    const source = graph.nodes[ref.node]!;
    if (source.op === "constant") return constantLoad(source);
    if (source.op === "broadcast-to") {
      const operand = source.inputs[0]!;
      const base = behindReshapes(graph, operand);
      if (graph.nodes[base.node]!.op === "constant") return constantLoad(graph.nodes[base.node]!);
      const stretched = source.specs[0]!.shape;
      const finer = refine(extents, extentsOf(stretched));
      if (finer !== undefined) {
        extents = finer;
        return {
          kind: "value",
          ref: base,
          shape: stretched,
          strides: stretchedStrides(graph.nodes[operand.node]!.specs[operand.output]!.shape, stretched),
        };
      }
    }
    return { kind: "value", ref, shape, strides: rowMajorStrides(shape) };
  });
  return { extents, list };
};

/** The part of the scope path that all share. */
const commonScope = (scopes: readonly string[]): string => {
  const paths = scopes.map((scope) => scope.split("/"));
  const first = paths[0]!;
  const differs = first.findIndex((part, i) => paths.some((path) => path[i] !== part));
  return first.slice(0, differs === -1 ? first.length : differs).join("/");
};

/**
 * Append the `fused` node that computes `members` (elementwise nodes of `graph`, ascending), and map the values of `results`.
 *
 * @param loads per node of `graph`; those of members are read.
 */
export const emitFused = (
  builder: GraphBuilder,
  graph: Graph,
  members: readonly number[],
  results: readonly number[],
  loads: readonly (Loads | undefined)[],
  extents: Extents,
): void => {
  const inside = new Set(members);
  const inputs: ValueRef[] = [];
  const strides: number[][] = [];
  const inputRegisters = new Map<string, number>();
  const loadKey = (load: Load & { kind: "value" }): string => `${valueKey(load.ref)} ${load.strides.join()} ${load.shape.join()}`;
  for (const id of members) {
    for (const load of loads[id]!.list) {
      if (load.kind === "constant" || inside.has(load.ref.node)) continue;
      const view = refineStrides(load.shape, load.strides, extents);
      const key = `${valueKey(load.ref)} ${view.join()}`;
      if (!inputRegisters.has(key)) {
        inputRegisters.set(key, inputs.push(load.ref) - 1);
        strides.push(view);
      }
      inputRegisters.set(loadKey(load), inputRegisters.get(key)!);
    }
  }

  const instructions: FusedInstruction[] = [];
  const constants = new Map<string, number>();
  const registers = new Map<number, number>();
  const append = (instruction: FusedInstruction): number => inputs.length + instructions.push(instruction) - 1;
  const registerOf = (load: Load): number => {
    if (load.kind === "value") return inside.has(load.ref.node) ? registers.get(load.ref.node)! : inputRegisters.get(loadKey(load))!;
    const key = `${load.value} ${load.dtype}`;
    const known = constants.get(key);
    if (known !== undefined) return known;
    const register = append({ op: "constant", args: [], dtype: load.dtype, params: { value: load.value } });
    constants.set(key, register);
    return register;
  };
  for (const id of members) {
    const { op, params, specs } = graph.nodes[id]!;
    const args = loads[id]!.list.map(registerOf);
    registers.set(id, append({ op, args, dtype: specs[0]!.dtype, params }));
  }

  const { shape, views } = collapse(sizesOf(extents), strides);
  const fused = builder.add({
    op: "fused",
    inputs: inputs.map((ref) => builder.resolve(ref)),
    params: { shape, views: views.map((list) => ({ strides: list })), instructions, results: results.map((id) => registers.get(id)!) },
    specs: results.map((id) => graph.nodes[id]!.specs[0]!),
    scope: commonScope(members.map((id) => graph.nodes[id]!.scope)),
  });
  results.forEach((id, output) => builder.map({ node: id, output: 0 }, { node: fused, output }));
};

/** What a bitcast looks at, if its result may be a view of it. */
export const sourceOfBitcast = (graph: Graph, { op, specs }: Node, { list: [load] }: Loads): ValueRef | undefined =>
  op === "bitcast" && load?.kind === "value" && elementCount(specOf(graph, load.ref).shape) === elementCount(specs[0]!.shape)
    ? load.ref
    : undefined;

/** Append a bitcast that joins nothing as it is, so that it is a view instead of a pass over memory. */
export const emitBitcast = (builder: GraphBuilder, graph: Graph, { id, params, specs, scope }: Node, source: ValueRef): void => {
  const { shape } = specOf(graph, source);
  const [{ dtype, shape: wanted }] = specs as readonly [Node["specs"][number]];
  let bits = builder.add({ op: "bitcast", inputs: [builder.resolve(source)], params, specs: [{ dtype, shape }], scope });
  if (!sameShape(shape, wanted))
    bits = builder.add({ op: "reshape", inputs: [{ node: bits, output: 0 }], params: { shape: [...wanted] }, specs, scope });
  builder.map({ node: id, output: 0 }, { node: bits, output: 0 });
};
