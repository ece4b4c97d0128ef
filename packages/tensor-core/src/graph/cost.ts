import { operators } from "../ops/table.ts";
import { type Graph, type Node, specOf } from "./graph.ts";
import type { Cost } from "./operator.ts";

/** Work of one node, from shapes alone. */
export const nodeCost = (graph: Graph, node: Node): Cost =>
  operators[node.op]!.cost(
    node.inputs.map((ref) => specOf(graph, ref)),
    node.specs,
    node.params,
  );

/** Work of all nodes together: flops, and the bytes that kernels read and write if each value goes through memory once per use. */
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
