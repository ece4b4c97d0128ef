import { type Graph, type Node, specOf } from "@skein/tensor-core";
import type { KernelNode } from "./kernel.ts";

/** A node as its kernel sees it: specs instead of references. */
export const kernelNodeOf = (graph: Graph, node: Node): KernelNode => ({
  op: node.op,
  inputs: node.inputs.map((ref) => specOf(graph, ref)),
  outputs: node.specs,
  params: node.params,
});
