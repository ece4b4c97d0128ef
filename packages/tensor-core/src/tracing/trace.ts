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
  type MeshCoordinates,
  requireCoordinates,
  type TraceState,
  withTrace,
} from "../graph/emit.ts";
import { type Graph, GraphBuilder, ownOrigin, type ValueRef, valueKey } from "../graph/graph.ts";
import { Tensor } from "../graph/tensor.ts";

/** Result of tracing a function: its graph, and the tree structures of its inputs and outputs. */
export interface Traced {
  readonly graph: Graph;
  readonly inputs: TreeStructure;
  readonly outputs: TreeStructure;
  /**
   * Results of differentiation: the cotangents of each value, and the primals. Valid only for `graph`, not for graphs
   * that passes create from `graph`.
   */
  readonly derivatives: Derivatives;
  /** Whether the function contains custom derivatives. `graph` does not represent custom derivatives. */
  readonly hasOwnDerivatives: boolean;
}

/** Removes the nodes that only carry a custom derivative; their consumers read the original values. */
const withoutGradientRules = (
  graph: Graph,
  { gradientRules, derivatives }: TraceState,
): { readonly graph: Graph; readonly derivatives: Derivatives } => {
  if (gradientRules.size === 0) return { graph, derivatives };
  const builder = new GraphBuilder();
  for (const node of graph.nodes) {
    const customNode = gradientRules.get(node.id);
    if (customNode === undefined) builder.copy(node);
    else
      node.specs.forEach((_, output) =>
        builder.map({ node: node.id, output }, builder.resolve(node.inputs[customNode.numArguments + output]!)),
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

/** Returns the suggested fix, for an error message, for an argument that is not an array. */
const cureOf = (value: unknown): string => {
  if (value === undefined) return "pass an NdArray";
  if (typeof value === "number") return `write NdArray.scalar(${value})`;
  if (isNumberList(value)) return `write NdArray.from(${excerpt(value)})`;
  if (ArrayBuffer.isView(value)) return "write NdArray.from(values, shape)";
  if (isPromise(value)) return "await it first";
  return "pass an NdArray, an array of the backend, or lists and plain objects of them";
};

/**
 * Throws an error that names the path of the argument that is not an array. A list of numbers is reported as a whole.
 */
const refuseArgument = (args: unknown, path: string): never => {
  let value = args;
  let location = "";
  for (const step of path.split(".")) {
    if (location !== "" && isNumberList(value)) break;
    value = (value as Record<string, unknown>)[step];
    location =
      location === ""
        ? `argument ${Number(step) + 1}`
        : `${location}${location.includes(" at ") ? "." : " at "}${step}`;
  }
  throw new ArgumentError(
    `${location} of a traced function is ${describe(value)}, expected an array; ${cureOf(value)}`,
  );
};

/**
 * Runs `fn` once on symbolic tensors and records its operators.
 *
 * @param fn Plain function of trees of tensors. May depend on shapes and dtypes, but not on element values.
 * @param args List of arguments: trees whose leaves have `dtype` and `shape` (host arrays, device arrays, or plain
 * specs).
 * @param options.mesh Number of ranks along each mesh axis, for collective operators.
 * @param options.place Mesh coordinates of the traced rank; `meshCoordinate` returns them. Graphs may then differ
 * between ranks.
 * @param options.composing Names of the users' operators whose compositions contain the function. Used only for tracing
 * compositions.
 * @throws ArgumentError if a leaf is not an array, and if the function returns anything other than tensors of its
 * trace.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(graph.nodes.map(({ op }) => op)); // ['input', 'constant', 'add']
 * ```
 */
export const trace = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  args: MapTree<Args, Tensor, TensorSpec> | Args,
  options: {
    readonly mesh?: Mesh;
    readonly place?: MeshCoordinates | undefined;
    readonly composing?: readonly string[];
  } = {},
): Traced => {
  if (typeof fn !== "function")
    throw new ArgumentError(
      `got ${describe(fn)} instead of a function to trace; pass the function itself, as in jit(fn, backend)`,
    );
  const state = emptyTrace(operators, options);
  requireCoordinates("trace", state.mesh, state.place);
  const { leaves, structure } = flattenTree<TensorSpec>(args);
  if (typeof structure === "string" || !("list" in structure))
    throw new ArgumentError(`got ${describe(args)} as the arguments to trace with; pass a list, as in trace(fn, [x])`);
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
      "a traced function returned a Promise, but tracing is synchronous; remove async and await from it, and await the result of the compiled function",
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
            ? "return its result"
            : "return results computed from its arguments"
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
 * Traces a function in a separate trace with the mesh and rank of the running trace, to inspect the graph before
 * `replay` inserts it. The function must not use tensors of the running trace, except as arguments.
 *
 * @param args Trees of specs or of tensors in the running trace.
 */
export const traceWithin = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  args: Args,
): Traced => {
  const { mesh, place, composing } = currentTrace("traceWithin");
  return trace(fn, args, { mesh, place, composing });
};
