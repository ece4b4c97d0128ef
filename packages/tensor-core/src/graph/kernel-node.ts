import { type Graph, type Node, type Params, specOf } from "./graph.ts";
import type { TensorSpec } from "../shape.ts";

/** Description of a node for its kernel: specs of the operands instead of references to other nodes. */
export interface KernelNode<P extends Params = Params> {
  readonly op: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly params: P;
}

/** Returns the kernel's description of a node, independent of the node's position in the graph. */
export const kernelNodeOf = (graph: Graph, node: Node): KernelNode => ({
  op: node.op,
  inputs: node.inputs.map((ref) => specOf(graph, ref)),
  outputs: node.specs,
  params: node.params,
});
