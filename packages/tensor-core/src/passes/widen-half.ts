import type { HalfDType } from "../dtype.ts";
import { type Graph, GraphBuilder, specOf } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";
import { copyCast } from "./mixed-precision.ts";

/**
 * Computes products of f16 and bf16 operands in f32, with casts before and after, for backends and devices without
 * 16-bit arithmetic. The dtype of results is unchanged, so results differ only by the rounding of sums. Returns the
 * same graph object if the graph has no f16 or bf16 products.
 *
 * @param dtypes Dtypes to widen. Default: f16 and bf16.
 */
export const widenHalf = (graph: Graph, dtypes: readonly HalfDType[] = ["f16", "bf16"]): Graph => {
  const halves = graph.nodes.map((node) =>
    (operators[node.op]?.halfOperands ?? []).filter((i) =>
      dtypes.some((dtype) => specOf(graph, node.inputs[i]!).dtype === dtype),
    ),
  );
  if (halves.every((positions) => positions.length === 0)) return graph;
  const builder = new GraphBuilder();
  for (const node of graph.nodes) {
    const positions = halves[node.id]!;
    const { resultDtype: _, ...params } = node.params;
    if (positions.length === 0) builder.copy(node);
    else copyCast(builder, node, { positions, dtype: "f32", params });
  }
  return builder.finish(graph);
};
