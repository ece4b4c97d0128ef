import { ArgumentError } from "../errors.ts";
import { operators } from "../ops/table.ts";
import type { TensorSpec } from "../shape.ts";
import { flattenTree, type MapTree, type TreeStructure, unflattenTree } from "../tree.ts";
import { addDefinitions } from "./definitions.ts";
import { emptyTrace, type Mesh, type TraceState, withTrace } from "./emit.ts";
import { type Graph, GraphBuilder, type ValueRef } from "./graph.ts";
import { Tensor } from "./tensor.ts";

/** A traced function: its graph, and how its flat inputs and outputs form trees. */
export interface Traced {
  readonly graph: Graph;
  readonly inputs: TreeStructure;
  readonly outputs: TreeStructure;
}

/** A graph without the nodes that only carried a derivative: their values are read where they were computed. */
const withoutGradientRules = (graph: Graph, { gradientRules }: TraceState): Graph => {
  if (gradientRules.size === 0) return graph;
  const builder = new GraphBuilder();
  for (const node of graph.nodes) {
    const passed = gradientRules.get(node.id);
    if (passed === undefined) builder.copy(node);
    else
      node.specs.forEach((_, output) =>
        builder.map({ node: node.id, output }, builder.resolve(node.inputs[passed.numArguments + output]!)),
      );
  }
  return builder.finish(graph);
};

/**
 * Run `fn` once on symbolic tensors and record what it does.
 *
 * @param fn plain function over trees of tensors; must not depend on values, only on shapes.
 * @param args trees whose leaves have `dtype` and `shape` (arrays on host or device, or plain specs); outermost is the argument list.
 * @param options.mesh ranks along each mesh axis that collective operators name.
 * @param options.composing operators of users whose compositions the function is a part of; for what traces those.
 */
export const trace = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  args: MapTree<Args, Tensor, TensorSpec> | Args,
  options: { readonly mesh?: Mesh; readonly composing?: readonly string[] } = {},
): Traced => {
  const state = emptyTrace(operators, options.mesh ?? {}, options.composing);
  const { leaves, structure } = flattenTree<TensorSpec>(args);
  const inputs = leaves.map((leaf, index) => {
    const spec = { dtype: leaf.dtype, shape: [...leaf.shape] };
    state.nodes.push({ id: index, op: "input", inputs: [], params: { index }, specs: [spec], scope: "" });
    return new Tensor(spec, { node: index, output: 0 }, state);
  });
  const result = withTrace(state, () => fn(...unflattenTree<Args>(structure, inputs)));
  const flat = flattenTree<unknown>(result);
  const outputs = flat.leaves.map((leaf): ValueRef => {
    if (leaf instanceof Tensor && leaf.trace === state) return leaf.ref;
    throw new ArgumentError(
      `a traced function must return a tree of its own tensors, but a leaf is ${leaf instanceof Tensor ? "a tensor of another trace" : String(leaf)}; wrap numbers in constant()`,
    );
  });
  const graph = withoutGradientRules({ nodes: state.nodes, inputs: inputs.map((input) => input.ref.node), outputs }, state);
  return {
    graph: addDefinitions(graph, { operators: state.definitions, mesh: state.mesh }),
    inputs: structure,
    outputs: flat.structure,
  };
};
