import { definitionsOf } from "../graph/definitions.ts";
import { emptyTrace, withTrace } from "../graph/emit.ts";
import type { Graph } from "../graph/graph.ts";
import { type Operator, unknownOperator } from "../graph/operator.ts";
import { operators } from "./table.ts";

/** The operator of a node: ours, or one whose definition the graph carries; `undefined` where nobody has defined it. */
export const findOperator = (graph: Graph, op: string): Operator | undefined =>
  Object.hasOwn(operators, op) ? operators[op] : definitionsOf(graph).operators.get(op);

/** As `findOperator`. Throws OperatorError where nobody has defined it. */
export const operatorOf = (graph: Graph, op: string): Operator => {
  const operator = findOperator(graph, op);
  if (operator === undefined)
    throw unknownOperator(op, [...Object.keys(operators), ...definitionsOf(graph).operators.keys()]);
  return operator;
};

/** Run functions of users' operators where they may trace: for the mesh of the graph that they are of. */
export const withMeshOf = <T>(graph: Graph, fn: () => T): T =>
  withTrace(emptyTrace(operators, definitionsOf(graph)), fn);
