import { definitionsOf } from "../graph/definitions.ts";
import { emptyTrace, withTrace } from "../graph/emit.ts";
import type { Graph } from "../graph/graph.ts";
import { type Operator, unknownOperator } from "../graph/operator.ts";
import { operators } from "./table.ts";

/**
 * Looks up an operator by name: a built-in operator, or a user's operator that the graph defines. Returns `undefined`
 * for an undefined operator.
 */
export const findOperator = (graph: Graph, op: string): Operator | undefined =>
  Object.hasOwn(operators, op) ? operators[op] : definitionsOf(graph).operators.get(op);

/**
 * Returns the operator with the given name, as `findOperator` does.
 * @throws OperatorError if the operator is undefined.
 */
export const operatorOf = (graph: Graph, op: string): Operator => {
  const operator = findOperator(graph, op);
  if (operator === undefined)
    throw unknownOperator(op, [...Object.keys(operators), ...definitionsOf(graph).operators.keys()]);
  return operator;
};

/**
 * Runs `fn` inside an empty trace with the mesh of the graph. Needed if `fn` calls functions of users' operators,
 * because these functions may trace.
 */
export const withMeshOf = <T>(graph: Graph, fn: () => T): T =>
  withTrace(emptyTrace(operators, definitionsOf(graph)), fn);
