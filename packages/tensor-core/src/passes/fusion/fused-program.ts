import type { DType } from "../../dtype.ts";
import {
  type Graph,
  type GraphBuilder,
  laterPhase,
  type Node,
  originOf,
  specOf,
  type ValueRef,
  valueKey,
} from "../../graph/graph.ts";
import { constantOperator } from "../../ops/constant.ts";
import { type FoldOp, type FusedFold, type FusedInstruction, fusedName } from "../../ops/fused.ts";
import { reshapeOperator } from "../../ops/reshape.ts";
import { operators } from "../../ops/table.ts";
import { elementCount, rowMajorStrides, sameShape, type Shape } from "../../shape.ts";
import {
  collapse,
  type Extents,
  extentsOf,
  refine,
  refineStrides,
  sizesOf,
  broadcastStrides,
} from "./iteration-space.ts";

/** Operand of a node inside a fused node: a number, or a value that is read through a strided view. */
export type Load =
  | { readonly kind: "number"; readonly value: number | string; readonly dtype: DType }
  | { readonly kind: "value"; readonly ref: ValueRef; readonly shape: Shape; readonly strides: readonly number[] };

/** Operands (loads) of an elementwise node or fold, and the iteration space that all operands have in common. */
export interface Loads {
  readonly extents: Extents;
  readonly list: readonly Load[];
  /** Fold that computes a reduction. Absent: elementwise node. */
  readonly fold?: FusedFold;
}

/** Follows reshapes backwards, and returns the first value that is not the result of a reshape. */
const skipReshapes = (graph: Graph, ref: ValueRef): ValueRef => {
  let current = ref;
  for (
    let node = graph.nodes[current.node]!;
    operators[node.op]?.keepsOrder === true;
    node = graph.nodes[current.node]!
  )
    current = node.inputs[0]!;
  return current;
};

/** Returns the load of a constant node; undefined for other nodes. */
const constantLoad = ({ op, params, specs }: Node): Load | undefined => {
  const value = operators[op]?.constantValue?.(params);
  return value === undefined ? undefined : { kind: "number", value, dtype: specs[0]!.dtype };
};

/**
 * Returns the loads of an elementwise node. Reads through reshapes, constants and broadcasts if a common iteration
 * space exists.
 */
export const loadsOf = (graph: Graph, node: Node): Loads => {
  const { shape } = node.specs[0]!;
  let extents = extentsOf(shape);
  const list = node.inputs.map((input): Load => {
    const ref = skipReshapes(graph, input);
    const source = graph.nodes[ref.node]!;
    const constant = constantLoad(source);
    if (constant !== undefined) return constant;
    if (operators[source.op]?.stretches === true) {
      const operand = source.inputs[0]!;
      const base = skipReshapes(graph, operand);
      const stretchedConstant = constantLoad(graph.nodes[base.node]!);
      if (stretchedConstant !== undefined) return stretchedConstant;
      const stretched = source.specs[0]!.shape;
      const finer = refine(extents, extentsOf(stretched));
      if (finer !== undefined) {
        extents = finer;
        return {
          kind: "value",
          ref: base,
          shape: stretched,
          strides: broadcastStrides(graph.nodes[operand.node]!.specs[operand.output]!.shape, stretched),
        };
      }
    }
    return { kind: "value", ref, shape, strides: rowMajorStrides(shape) };
  });
  return { extents, list };
};

/**
 * Returns the load of a reduction over the last dimensions that a kernel can fuse with its operand; `undefined` for
 * other nodes.
 */
export const foldLoadsOf = (graph: Graph, { op, inputs, params }: Node): Loads | undefined => {
  const fold = operators[op]?.fold;
  if (fold === undefined) return undefined;
  const { dtype, shape } = specOf(graph, inputs[0]!);
  const count = elementCount(shape);
  const first = fold.from(params, shape.length);
  if (first === undefined || dtype !== fold.dtype || count === 0) return undefined;
  const size = elementCount(shape.slice(first));
  if (size === 1) return undefined;
  const ref = skipReshapes(graph, inputs[0]!);
  const { constantValue, stretches } = operators[graph.nodes[ref.node]!.op] ?? {};
  // Other passes simplify reductions of constants and repeated values.
  if (constantValue !== undefined || stretches === true) return undefined;
  const extents = size === count ? extentsOf(shape) : refine(extentsOf(shape), [size, count])!;
  return {
    extents,
    list: [{ kind: "value", ref, shape, strides: rowMajorStrides(shape) }],
    fold: { op: op as FoldOp, size },
  };
};

/** Returns the longest common prefix of all scope paths. */
const commonScope = (scopes: readonly string[]): string => {
  const paths = scopes.map((scope) => scope.split("/"));
  const first = paths[0]!;
  const differs = first.findIndex((part, i) => paths.some((path) => path[i] !== part));
  return first.slice(0, differs === -1 ? first.length : differs).join("/");
};

/**
 * Appends a `fused` node that computes `members` (ids of elementwise nodes and folds of `graph`, ascending), and maps
 * the values in `results` to its outputs.
 *
 * @param loads Loads of each node of `graph`; only the loads of members are read.
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
  const loadKey = (load: Load & { kind: "value" }): string =>
    `${valueKey(load.ref)} ${load.strides.join()} ${load.shape.join()}`;
  for (const id of members) {
    for (const load of loads[id]!.list) {
      if (load.kind === "number" || inside.has(load.ref.node)) continue;
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
    if (load.kind === "value")
      return inside.has(load.ref.node) ? registers.get(load.ref.node)! : inputRegisters.get(loadKey(load))!;
    const key = `${load.value} ${load.dtype}`;
    const known = constants.get(key);
    if (known !== undefined) return known;
    const register = append({ op: constantOperator.name, args: [], dtype: load.dtype, params: { value: load.value } });
    constants.set(key, register);
    return register;
  };
  for (const id of members) {
    const { op, params, specs } = graph.nodes[id]!;
    const args = loads[id]!.list.map(registerOf);
    // A fold has no register, because no member of the node reads its result.
    registers.set(id, loads[id]!.fold === undefined ? append({ op, args, dtype: specs[0]!.dtype, params }) : args[0]!);
  }

  const { shape, views } = collapse(sizesOf(extents), strides);
  const folds = results.map((id) => loads[id]!.fold ?? null);
  const fused = builder.add({
    op: fusedName,
    inputs: inputs.map((ref) => builder.resolve(ref)),
    params: {
      shape,
      views: views.map((list) => ({ strides: list })),
      instructions,
      results: results.map((id) => registers.get(id)!),
      ...(folds.some((fold) => fold !== null) && { folds }),
    },
    specs: results.map((id) => graph.nodes[id]!.specs[0]!),
    scope: commonScope(members.map((id) => graph.nodes[id]!.scope)),
    phase: members.map((id) => graph.nodes[id]!.phase).reduce(laterPhase),
    region: "",
  });
  results.forEach((id, output) => builder.map({ node: id, output: 0 }, { node: fused, output }));
};

/** Appends a reduction that was not fused, with its original operator. */
export const emitReduction = (builder: GraphBuilder, graph: Graph, node: Node, { list: [load] }: Loads): void => {
  const { ref, shape } = load as Load & { readonly kind: "value" };
  let operand = builder.resolve(ref);
  const spec = specOf(graph, ref);
  if (!sameShape(spec.shape, shape)) {
    const specs = [{ dtype: spec.dtype, shape }];
    operand = {
      node: builder.add({
        op: reshapeOperator.name,
        inputs: [operand],
        params: { shape: [...shape] },
        specs,
        ...originOf(node),
      }),
      output: 0,
    };
  }
  const id = builder.add({ ...node, inputs: [operand] });
  builder.map({ node: node.id, output: 0 }, { node: id, output: 0 });
};

/** Returns the operand of an elementwise node if the result may be a view of the operand; undefined otherwise. */
export const sourceOfView = (graph: Graph, { op, specs }: Node, { list: [load] }: Loads): ValueRef | undefined =>
  operators[op]?.viewOffset !== undefined &&
  load?.kind === "value" &&
  elementCount(specOf(graph, load.ref).shape) === elementCount(specs[0]!.shape)
    ? load.ref
    : undefined;

/** Appends an unchanged elementwise node whose result is a view of `source`. A fused node would copy the elements. */
export const emitView = (builder: GraphBuilder, graph: Graph, node: Node, source: ValueRef): void => {
  const { id, op, params, specs } = node;
  const { shape } = specOf(graph, source);
  const [{ dtype, shape: targetShape }] = specs as readonly [Node["specs"][number]];
  let view = builder.add({
    op,
    inputs: [builder.resolve(source)],
    params,
    specs: [{ dtype, shape }],
    ...originOf(node),
  });
  if (!sameShape(shape, targetShape))
    view = builder.add({
      op: reshapeOperator.name,
      inputs: [{ node: view, output: 0 }],
      params: { shape: [...targetShape] },
      specs,
      ...originOf(node),
    });
  builder.map({ node: id, output: 0 }, { node: view, output: 0 });
};
