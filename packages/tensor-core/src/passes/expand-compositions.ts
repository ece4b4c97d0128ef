import { OperatorError } from "../errors.ts";
import { type KernelNode, kernelNodeOf } from "../graph/kernel-node.ts";
import { checkComposition, traceComposition } from "../tracing/composition.ts";
import { addDefinitions, definitionsOf } from "../graph/definitions.ts";
import { composing } from "../graph/emit.ts";
import { type Graph, type Node, type Origin, originOf, type ValueRef } from "../graph/graph.ts";
import { isUserOperator, type Operator } from "../graph/operator.ts";
import { operatorOf, withMeshOf } from "../ops/lookup.ts";
import { roleOf } from "../ops/role.ts";
import { isCollective } from "./collective-order.ts";

const isArgument = (node: Node): boolean => roleOf(node) === "argument";

/**
 * Origin of the operator node that is replaced by the inserted nodes of its composition. For nodes outside of
 * compositions: an empty scope, and no other fields.
 */
type EnclosingOrigin = Pick<Origin, "scope"> & Partial<Origin>;

const joinScopes = (outer: string, inner: string): string =>
  outer === "" || inner === "" ? outer + inner : `${outer}/${inner}`;

/** Whether a composition contains a collective, directly or in nested compositions. */
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
 * Replaces each node whose operator has a composition by the composition, recursively. Nodes for which `runs` returns
 * true are kept, because the backend has a kernel or an instruction for the operator. The scope of inserted nodes ends
 * with the operator's name. Must run before all other passes, so that the passes process the inserted nodes.
 *
 * Nodes of users' operators without composition are kept; the backend rejects them. Returns the same graph object if
 * the graph has no users' operators and `runs` returns true for all nodes with a composition.
 *
 * @throws OperatorError if an operator is undefined, the results of a composition contradict the shape rule, or `runs`
 * returns true for a composition with collectives.
 */
export const expandCompositions = (graph: Graph, runs: (operator: Operator, node: KernelNode) => boolean): Graph => {
  const isChanged = graph.nodes.map((node) => {
    const operator = operatorOf(graph, node.op);
    if (isUserOperator(node.op)) return true;
    return operator.composition !== undefined && !runs(operator, kernelNodeOf(graph, node));
  });
  if (!isChanged.includes(true)) return graph;
  const definitions = definitionsOf(graph);
  const nodes: Node[] = [];
  const append = (node: Node): ValueRef[] => {
    const id = nodes.length;
    nodes.push({ ...node, id });
    return node.specs.map((_, output) => ({ node: id, output }));
  };
  let collected: Graph = graph;

  /** Appends the nodes of graph `part`, with `operands` as the inputs of `part`. Returns the outputs of `part`. */
  const insert = (part: Graph, operands: readonly ValueRef[], enclosing: EnclosingOrigin): ValueRef[] => {
    collected = addDefinitions(collected, definitionsOf(part));
    const values: (readonly ValueRef[])[] = [];
    const resolve = (ref: ValueRef): ValueRef => values[ref.node]![ref.output]!;
    for (const node of part.nodes) {
      const argument = isArgument(node) ? operands[part.inputs.indexOf(node.id)] : undefined;
      values.push(argument === undefined ? insertNode(part, node, node.inputs.map(resolve), enclosing) : [argument]);
    }
    return part.outputs.map(resolve);
  };
  const insertNode = (
    part: Graph,
    node: Node,
    inputs: readonly ValueRef[],
    enclosing: EnclosingOrigin,
  ): readonly ValueRef[] => {
    const origin = { ...originOf(node), ...enclosing, scope: joinScopes(enclosing.scope, node.scope) };
    const operator = operatorOf(part, node.op);
    if (operator.composition === undefined) return append({ ...node, inputs, ...origin });
    const kernelNode = kernelNodeOf(part, node);
    const isRun = runs(operator, kernelNode);
    // Compositions of built-in operators need no check at run time, because conformance tests check them.
    if (isRun && !isUserOperator(node.op)) return append({ ...node, inputs, ...origin });
    const composed = traceComposition(operator, kernelNode.inputs, node.params);
    checkComposition(node.op, composed, node.specs);
    if (isRun) {
      if (communicates(composed))
        throw new OperatorError(
          node.op,
          "its composition contains collectives, which a kernel or reference cannot run; do not pass a kernel or reference for it",
        );
      return append({ ...node, inputs, ...origin });
    }
    return composing(node.op, () => insert(composed, inputs, { ...origin, scope: joinScopes(origin.scope, node.op) }));
  };

  return withMeshOf(graph, () => {
    const outputs = insert(graph, [], { scope: "" });
    const inputs = nodes.filter(isArgument);
    // Number input nodes by their index in `inputs`, which is the argument order, not by node order.
    const order = new Map(graph.nodes.filter(isArgument).map(({ id }, i) => [id, inputs[i]!.id]));
    return addDefinitions(
      { nodes, inputs: graph.inputs.map((id) => order.get(id)!), outputs },
      { ...definitions, operators: definitionsOf(collected).operators },
    );
  });
};
