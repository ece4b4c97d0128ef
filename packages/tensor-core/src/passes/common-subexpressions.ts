import { type Graph, GraphBuilder, type Node, type ValueRef, valueKey } from "../graph/graph.ts";
import { paramKey } from "../graph/param-key.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { formatSpec } from "../shape.ts";
import { isCollective } from "./collective-order.ts";

const keyOf = (node: Node, inputs: readonly ValueRef[]): string => {
  const operands = inputs.map(valueKey);
  if (operators[node.op]?.commutative === true) operands.sort();
  return `${node.op}(${operands.join(",")})${paramKey(node.params)}${node.specs.map(formatSpec).join()}`;
};

/**
 * Whether a node may be merged with an equal node. False for arguments, for barriers, and for collectives, whose number
 * must be equal on all ranks.
 */
const mayMerge = (node: Node): boolean => !isCollective(node) && [undefined, "position"].includes(roleOf(node));

/**
 * Common subexpression elimination: nodes with equal operator, operands, parameters and specs are replaced by the first
 * such node. Random bits are merged too, because they depend only on their key. An optimization barrier protects
 * recomputed nodes from merging.
 *
 * Cost: O(nodes + edges).
 */
export const eliminateCommonSubexpressions = (graph: Graph): Graph => {
  const builder = new GraphBuilder();
  const known = new Map<string, number>();
  for (const node of graph.nodes) {
    if (!mayMerge(node)) {
      builder.copy(node);
      continue;
    }
    const key = keyOf(
      node,
      node.inputs.map((ref) => builder.resolve(ref)),
    );
    const first = known.get(key);
    if (first === undefined) known.set(key, builder.copy(node));
    else node.specs.forEach((_, output) => builder.map({ node: node.id, output }, { node: first, output }));
  }
  return builder.finish(graph);
};
