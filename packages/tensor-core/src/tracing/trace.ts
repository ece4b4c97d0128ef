import { describe, isNumberList, isPromise, isSpec } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { excerpt } from "../excerpt.ts";
import { inputOperator } from "../ops/input.ts";
import { operators } from "../ops/table.ts";
import { requireDType, requireShape, type TensorSpec } from "../shape.ts";
import { flattenTree, leafPaths, type MapTree, type TreeStructure, unflattenTree } from "../tree.ts";
import { addDefinitions } from "../graph/definitions.ts";
import {
  currentTrace,
  type Derivatives,
  emptyTrace,
  type Mesh,
  type MeshPlace,
  requirePlace,
  type TraceState,
  withTrace,
} from "../graph/emit.ts";
import { type Graph, GraphBuilder, ownOrigin, type ValueRef, valueKey } from "../graph/graph.ts";
import { Tensor } from "../graph/tensor.ts";

/** A traced function: its graph, and how its flat inputs and outputs form trees. */
export interface Traced {
  readonly graph: Graph;
  readonly inputs: TreeStructure;
  readonly outputs: TreeStructure;
  /**
   * What differentiation has told of the nodes of the graph: whose cotangent each value carries. It is of no use for
   * the graph that a pass makes of it.
   */
  readonly derivatives: Derivatives;
  /** Whether the function has values with a derivative of their own, which the graph has not. */
  readonly hasOwnDerivatives: boolean;
}

/** A graph without the nodes that only carried a derivative: their values are read where they were computed. */
const withoutGradientRules = (
  graph: Graph,
  { gradientRules, derivatives }: TraceState,
): { readonly graph: Graph; readonly derivatives: Derivatives } => {
  if (gradientRules.size === 0) return { graph, derivatives };
  const builder = new GraphBuilder();
  for (const node of graph.nodes) {
    const passed = gradientRules.get(node.id);
    if (passed === undefined) builder.copy(node);
    else
      node.specs.forEach((_, output) =>
        builder.map({ node: node.id, output }, builder.resolve(node.inputs[passed.numArguments + output]!)),
      );
  }
  const cotangents = new Map<string, ValueRef[]>();
  for (const [key, refs] of derivatives.cotangents) {
    const [node, output] = key.split(":").map(Number) as [number, number];
    const now = valueKey(builder.resolve({ node, output }));
    const found = new Map(
      [...(cotangents.get(now) ?? []), ...refs.map((ref) => builder.resolve(ref))].map((ref) => [valueKey(ref), ref]),
    );
    cotangents.set(now, [...found.values()]);
  }
  return {
    graph: builder.finish(graph),
    derivatives: { cotangents, primals: derivatives.primals.map((ref) => builder.resolve(ref)) },
  };
};

/** What to write in place of an argument that is no array. */
const cureOf = (value: unknown): string => {
  if (value === undefined) return "pass an NdArray";
  if (typeof value === "number") return `write NdArray.scalar(${value})`;
  if (isNumberList(value)) return `write NdArray.from(${excerpt(value)})`;
  if (ArrayBuffer.isView(value)) return "write NdArray.from(values, shape)";
  if (isPromise(value)) return "await it first";
  return "pass an NdArray, an array of the backend, or lists and plain objects of them";
};

/** Name the argument that holds what is no array: of a list of numbers all of it, not its first. */
const refuseArgument = (args: unknown, path: string): never => {
  let value = args;
  let shown = "";
  for (const step of path.split(".")) {
    if (shown !== "" && isNumberList(value)) break;
    value = (value as Record<string, unknown>)[step];
    shown = shown === "" ? `argument ${Number(step) + 1}` : `${shown}${shown.includes(" at ") ? "." : " at "}${step}`;
  }
  throw new ArgumentError(
    `${shown} of a traced function is ${describe(value)}, where an array is due; ${cureOf(value)}`,
  );
};

/**
 * Run `fn` once on symbolic tensors and record what it does.
 *
 * @param fn plain function over trees of tensors; must not depend on values, only on shapes.
 * @param args trees whose leaves have `dtype` and `shape` (arrays on host or device, or plain specs); outermost is the
 * argument list.
 * @param options.mesh ranks along each mesh axis that collective operators name.
 * @param options.place the rank that it is traced for, by its position along mesh axes: what `meshPlace` tells. Ranks
 * may then have graphs that differ.
 * @param options.composing operators of users whose compositions the function is a part of; for what traces those.
 * @throws ArgumentError where a leaf is no array, and where the function returns something else than its tensors.
 */
export const trace = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  args: MapTree<Args, Tensor, TensorSpec> | Args,
  options: {
    readonly mesh?: Mesh;
    readonly place?: MeshPlace | undefined;
    readonly composing?: readonly string[];
  } = {},
): Traced => {
  if (typeof fn !== "function")
    throw new ArgumentError(
      `${describe(fn)} was given where a function to trace is due; pass the function itself, as in jit(fn, backend)`,
    );
  const state = emptyTrace(operators, options);
  requirePlace("trace", state.mesh, state.place);
  const { leaves, structure } = flattenTree<TensorSpec>(args);
  if (typeof structure === "string" || !("list" in structure))
    throw new ArgumentError(
      `${describe(args)} was given as the arguments to trace with; pass the list of them, as in trace(fn, [x])`,
    );
  const inputs = leaves.map((leaf, index) => {
    if (!isSpec(leaf)) refuseArgument(args, leafPaths(args)[index]!);
    requireDType("trace", leaf.dtype);
    requireShape("trace", leaf.shape);
    const spec = { dtype: leaf.dtype, shape: [...leaf.shape] };
    state.nodes.push({ id: index, op: inputOperator.name, inputs: [], params: { index }, specs: [spec], ...ownOrigin });
    return new Tensor(spec, { node: index, output: 0 }, state);
  });
  const result = withTrace(state, () => fn(...unflattenTree<Args>(structure, inputs)));
  if (isPromise(result))
    throw new ArgumentError(
      "a traced function returned a Promise, but tracing does not wait; take async and await out of it, and await what the compiled function returns",
    );
  const flat = flattenTree<unknown>(result);
  const outputs = flat.leaves.map((leaf): ValueRef => {
    if (leaf instanceof Tensor && leaf.trace === state) return leaf.ref;
    const found = leaf instanceof Tensor ? `${leaf} of another trace` : describe(leaf);
    throw new ArgumentError(
      `a traced function must return its own tensors, alone or in lists and plain objects, but ${flat.structure === "leaf" ? "its result" : "a part of its result"} is ${found}; ${
        typeof leaf === "number"
          ? `write constant(${leaf})`
          : leaf === undefined
            ? "return what it computes"
            : "return what it computes from its arguments"
      }`,
    );
  });
  const { graph, derivatives } = withoutGradientRules(
    { nodes: state.nodes, inputs: inputs.map((input) => input.ref.node), outputs },
    state,
  );
  return {
    graph: addDefinitions(graph, { operators: state.definitions, mesh: state.mesh, place: state.place }),
    inputs: structure,
    outputs: flat.structure,
    derivatives,
    hasOwnDerivatives: state.gradientRules.size > 0,
  };
};

/**
 * `trace` a function apart, for the mesh and the rank of the running trace, to look at its graph before `replay` puts
 * it there. It uses no tensors but its arguments.
 *
 * @param args trees of the running trace's tensors, or of specs.
 */
export const traceWithin = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  args: Args,
): Traced => {
  const { mesh, place, composing } = currentTrace("traceWithin");
  return trace(fn, args, { mesh, place, composing });
};
