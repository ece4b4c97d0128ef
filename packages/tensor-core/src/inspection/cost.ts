import { OperatorError } from "../errors.ts";
import { operatorOf, withMeshOf } from "../ops/lookup.ts";
import { type Graph, type Node, specOf } from "../graph/graph.ts";
import { type Cost, isUserOperator } from "../graph/operator.ts";

/** Computes the cost of one node from shapes. Throws OperatorError if a user's cost rule returns an invalid cost. */
export const nodeCost = (graph: Graph, node: Node): Cost => {
  const operator = operatorOf(graph, node.op);
  const inputs = node.inputs.map((ref) => specOf(graph, ref));
  if (!isUserOperator(node.op)) return operator.cost(inputs, node.specs, node.params);
  const cost = withMeshOf(graph, () => operator.cost(inputs, node.specs, node.params));
  // Backends use these numbers to split long-running kernels.
  for (const unit of ["flops", "bytesRead", "bytesWritten"] as const)
    if (!(Number.isFinite(cost?.[unit]) && cost[unit] >= 0))
      throw new OperatorError(
        node.op,
        `its cost rule returned ${String(cost?.[unit])} for ${unit}; return a finite number, 0 or more`,
      );
  return cost;
};

/**
 * Computes the total cost of all nodes: flops, and the bytes read and written if every use of a value is a read from
 * memory.
 *
 * @example
 * ```ts
 * const { graph } = trace((a: Tensor, b: Tensor) => matmul(a, b), [
 *   { dtype: "f32", shape: [2, 3] },
 *   { dtype: "f32", shape: [3, 4] },
 * ]);
 * console.log(graphCost(graph).flops); // 48
 * ```
 */
export const graphCost = (graph: Graph): Cost =>
  graph.nodes
    .map((node) => nodeCost(graph, node))
    .reduce(
      (sum, cost) => ({
        flops: sum.flops + cost.flops,
        bytesRead: sum.bytesRead + cost.bytesRead,
        bytesWritten: sum.bytesWritten + cost.bytesWritten,
      }),
      {
        flops: 0,
        bytesRead: 0,
        bytesWritten: 0,
      },
    );
