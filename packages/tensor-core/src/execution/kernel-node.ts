import { type Graph, type Node, type Params, specOf } from "../graph/graph.ts";
import type { TensorSpec } from "../shape.ts";

/** A node as its kernel sees it: specs instead of references. */
export interface KernelNode {
  readonly op: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly params: Params;
}

export const kernelNodeOf = (graph: Graph, node: Node): KernelNode => ({
  op: node.op,
  inputs: node.inputs.map((ref) => specOf(graph, ref)),
  outputs: node.specs,
  params: node.params,
});
