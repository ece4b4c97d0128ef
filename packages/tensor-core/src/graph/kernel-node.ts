import { type Graph, type Node, type Params, specOf } from "./graph.ts";
import type { TensorSpec } from "../shape.ts";

/** A node as its kernel sees it: specs instead of references. */
export interface KernelNode<P extends Params = Params> {
  readonly op: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly params: P;
}

/** Kernel's view of a node, without its position in the graph. */
export const kernelNodeOf = (graph: Graph, node: Node): KernelNode => ({
  op: node.op,
  inputs: node.inputs.map((ref) => specOf(graph, ref)),
  outputs: node.specs,
  params: node.params,
});
