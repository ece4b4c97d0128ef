import { OperatorError } from "../errors.ts";
import { type KernelNode, kernelNodeOf } from "../graph/kernel-node.ts";
import { checkComposition, traceComposition } from "../tracing/composition.ts";
import { addDefinitions, definitionsOf } from "../graph/definitions.ts";
import { composing } from "../graph/emit.ts";
import { type Graph, type Node, type Origin, originOf, type ValueRef } from "../graph/graph.ts";
import { isUsersOperator, type Operator } from "../graph/operator.ts";
import { operatorOf, withMeshOf } from "../ops/lookup.ts";
import { roleOf } from "../ops/role.ts";
import { isCollective } from "./collective-order.ts";

const isArgument = (node: Node): boolean => roleOf(node) === "argument";

/** Where the operator of a composition comes from; of the graph itself nothing but an empty scope. */
type Within = Pick<Origin, "scope"> & Partial<Origin>;

const joinScopes = (outer: string, inner: string): string =>
  outer === "" || inner === "" ? outer + inner : `${outer}/${inner}`;

/** Whether there is a collective in a composition, or in those of the operators that it uses. */
const communicates = (graph: Graph): boolean =>
  graph.nodes.some((node) => {
    if (isCollective(node)) return true;
    const operator = operatorOf(graph, node.op);
    if (operator.composition === undefined) return false;
    return composing(node.op, () =>
      communicates(traceComposition(operator, kernelNodeOf(graph, node).inputs, node.params)),
    );
  });

/**
 * Put the compositions of users' operators in the place of their nodes, as deep as they are nested, but for those that
 * `runs` says yes to: what a backend has a kernel for. Their nodes are named by the scope of the operator's. Comes
 * before all other passes, which then treat them as any others.
 *
 * An operator without composition stays too, for the backend to refuse. Returns the graph itself where it has only
 * operators of ours.
 *
 * @throws OperatorError for an operator that is not defined, for a composition that gives other results than the shape
 * rule says, and for one with collectives in it that `runs` wants to keep.
 */
export const expandCompositions = (graph: Graph, runs: (operator: Operator, node: KernelNode) => boolean): Graph => {
  for (const { op } of graph.nodes) operatorOf(graph, op);
  if (!graph.nodes.some(({ op }) => isUsersOperator(op))) return graph;
  const definitions = definitionsOf(graph);
  const nodes: Node[] = [];
  const append = (node: Node): ValueRef[] => {
    const id = nodes.length;
    nodes.push({ ...node, id });
    return node.specs.map((_, output) => ({ node: id, output }));
  };
  let met: Graph = graph;

  /** Append the nodes of `part`, whose inputs are `operands`. */
  const place = (part: Graph, operands: readonly ValueRef[], within: Within): ValueRef[] => {
    met = addDefinitions(met, definitionsOf(part));
    const values: (readonly ValueRef[])[] = [];
    const resolve = (ref: ValueRef): ValueRef => values[ref.node]![ref.output]!;
    for (const node of part.nodes) {
      const argument = isArgument(node) ? operands[part.inputs.indexOf(node.id)] : undefined;
      values.push(argument === undefined ? placeNode(part, node, node.inputs.map(resolve), within) : [argument]);
    }
    return part.outputs.map(resolve);
  };
  const placeNode = (part: Graph, node: Node, inputs: readonly ValueRef[], within: Within): readonly ValueRef[] => {
    const origin = { ...originOf(node), ...within, scope: joinScopes(within.scope, node.scope) };
    const operator = operatorOf(part, node.op);
    const kernelNode = kernelNodeOf(part, node);
    if (operator.composition === undefined) return append({ ...node, inputs, ...origin });
    const composed = traceComposition(operator, kernelNode.inputs, node.params);
    checkComposition(node.op, composed, node.specs);
    if (runs(operator, kernelNode)) {
      if (communicates(composed))
        throw new OperatorError(
          node.op,
          "its composition holds collectives, for which no kernel or reference can stand; leave those out",
        );
      return append({ ...node, inputs, ...origin });
    }
    return composing(node.op, () => place(composed, inputs, { ...origin, scope: joinScopes(origin.scope, node.op) }));
  };

  return withMeshOf(graph, () => {
    const outputs = place(graph, [], { scope: "" });
    const inputs = nodes.filter(isArgument);
    // In argument order: an input says which argument it is by its place in the list, not among the nodes.
    const order = new Map(graph.nodes.filter(isArgument).map(({ id }, i) => [id, inputs[i]!.id]));
    return addDefinitions(
      { nodes, inputs: graph.inputs.map((id) => order.get(id)!), outputs },
      { ...definitions, operators: definitionsOf(met).operators },
    );
  });
};
