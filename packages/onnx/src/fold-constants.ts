import type { Graph } from "@skein/tensor-core";
import { GraphBuilder, interpretWorld, type ReferenceArray, valueKey, type ValueRef } from "@skein/tensor-core/backend";
import { isKnown } from "./affine.ts";
import type { MergedNode } from "./merge-traces.ts";

/**
 * Operators whose results are not folded into arrays, because ONNX stores them in less space than their elements need.
 */
const compactOps: readonly string[] = ["constant", "broadcast-to"];

/**
 * Computes the values that depend neither on an argument nor on the batch size, such as rotary angles, at export time
 * in f64. The operators that compute these values need no ONNX equivalent.
 *
 * @param graph One of the graphs from which `nodes` were merged.
 * @returns the computed arrays, by `valueKey`.
 */
export const foldConstants = (graph: Graph, nodes: readonly MergedNode[]): ReadonlyMap<string, ReferenceArray> => {
  const isArgument = new Set(graph.inputs);
  const isConstant: boolean[] = [];
  const builder = new GraphBuilder();
  const folded: ValueRef[] = [];
  const outputs: ValueRef[] = [];
  for (const node of nodes) {
    isConstant[node.id] =
      !isArgument.has(node.id) &&
      node.inputs.every((ref) => isConstant[ref.node]!) &&
      node.specs.every(({ shape }) => shape.every(isKnown));
    if (!isConstant[node.id]!) continue;
    const id = builder.copy(graph.nodes[node.id]!);
    if (compactOps.includes(node.op)) continue;
    node.specs.forEach((_, output) => {
      folded.push({ node: node.id, output });
      outputs.push({ node: id, output });
    });
  }
  const [results] = interpretWorld({ nodes: builder.nodes, inputs: [], outputs }, [[]]);
  return new Map(folded.map((ref, i) => [valueKey(ref), results![i]!]));
};
