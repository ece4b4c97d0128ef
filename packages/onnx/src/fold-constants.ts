import type { Graph } from "@skein/tensor-core";
import { GraphBuilder, interpretWorld, type ReferenceArray, valueKey, type ValueRef } from "@skein/tensor-core/backend";
import { isKnown } from "./affine.ts";
import type { MergedNode } from "./merge-traces.ts";

/** What ONNX writes shorter than its elements. */
const keptShort: readonly string[] = ["constant", "broadcast-to"];

/**
 * Values that depend on no argument and on no batch, such as angles of positions: computed once, here, in f64. They may
 * come from operators that ONNX does not have.
 *
 * @param graph one of those that `nodes` were merged of. @returns arrays by the keys of values.
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
    if (keptShort.includes(node.op)) continue;
    node.specs.forEach((_, output) => {
      folded.push({ node: node.id, output });
      outputs.push({ node: id, output });
    });
  }
  const [results] = interpretWorld({ nodes: builder.nodes, inputs: [], outputs }, [[]]);
  return new Map(folded.map((ref, i) => [valueKey(ref), results![i]!]));
};
