import type { DType } from "../dtype.ts";
import { type Graph, GraphBuilder, type Node, originOf, type Params, type ValueRef, valueKey } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";
import { elementCount } from "../shape.ts";

const isSelection = ({ op }: Node): boolean => operators[op]?.selects === true;
const isConstant = ({ op }: Node): boolean => operators[op]?.constantValue !== undefined;

/** Returns the operand that is not a constant; undefined if no operand or several operands are not constants. */
const onlyVariable = (graph: Graph, node: Node): ValueRef | undefined => {
  const variables = new Map(
    node.inputs.filter((ref) => !isConstant(graph.nodes[ref.node]!)).map((ref) => [valueKey(ref), ref]),
  );
  return variables.size === 1 ? [...variables.values()][0] : undefined;
};

/**
 * Moves slices before elementwise computations: if all readers of `f(x, constants)` are slices, each slice is replaced
 * by `f(slice(x), constants)`. Example: the scaling of a reduced gradient bucket by 1/P moves into the update of each
 * parameter, which saves one pass over all gradients.
 *
 * Applied only if the slices together have at most as many elements as the sliced value, so the cost does not increase.
 * Results do not change.
 */
export const sinkSlices = (graph: Graph): Graph => {
  const users: Node[][] = graph.nodes.map(() => []);
  for (const node of graph.nodes) for (const ref of node.inputs) users[ref.node]!.push(node);
  const returned = new Set(graph.outputs.map((ref) => ref.node));
  const variables = new Map<number, ValueRef>();
  for (const node of graph.nodes) {
    if (operators[node.op]?.scalar === undefined || returned.has(node.id) || users[node.id]!.length === 0) continue;
    const size = users[node.id]!.reduce(
      (sum, user) => sum + (isSelection(user) ? elementCount(user.specs[0]!.shape) : Infinity),
      0,
    );
    const variable = onlyVariable(graph, node);
    if (variable !== undefined && size <= elementCount(node.specs[0]!.shape)) variables.set(node.id, variable);
  }
  if (variables.size === 0) return graph;

  const builder = new GraphBuilder();
  for (const node of graph.nodes) {
    if (variables.has(node.id)) continue;
    const computed = isSelection(node) ? graph.nodes[node.inputs[0]!.node]! : undefined;
    const source = computed === undefined ? undefined : variables.get(computed.id);
    if (computed === undefined || source === undefined) {
      builder.copy(node);
      continue;
    }
    const { shape } = node.specs[0]!;
    const add = (from: Node, op: string, inputs: readonly ValueRef[], params: Params, dtype: DType): ValueRef => ({
      node: builder.add({ op, inputs, params, specs: [{ dtype, shape }], ...originOf(from) }),
      output: 0,
    });
    const part = add(
      node,
      node.op,
      [builder.resolve(source)],
      node.params,
      graph.nodes[source.node]!.specs[source.output]!.dtype,
    );
    const inputs = computed.inputs.map((ref) => {
      const operand = graph.nodes[ref.node]!;
      return isConstant(operand)
        ? add(operand, operand.op, [], { ...operand.params, shape }, operand.specs[0]!.dtype)
        : part;
    });
    builder.map(
      { node: node.id, output: 0 },
      add(computed, computed.op, inputs, computed.params, computed.specs[0]!.dtype),
    );
  }
  return builder.finish(graph);
};
