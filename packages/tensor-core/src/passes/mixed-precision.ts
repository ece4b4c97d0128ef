import { type Graph, GraphBuilder, type Node, type Origin, originOf, specOf, type ValueRef } from "../graph/graph.ts";
import { castOperator } from "../ops/cast.ts";
import { operators } from "../ops/table.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { simplify } from "./simplify.ts";

const halfOperandsOf = (node: Node): readonly number[] => operators[node.op]?.halfOperands ?? [];

/** Per node: whether a result of it comes to be an operand of a product, through whatever else. */
const feedsProducts = (graph: Graph): boolean[] => {
  const feeds = graph.nodes.map(() => false);
  for (const node of graph.nodes.toReversed()) {
    const half = halfOperandsOf(node);
    node.inputs.forEach((ref, i) => {
      if (half.includes(i) || (half.length === 0 && feeds[node.id]!)) feeds[ref.node] = true;
    });
  }
  return feeds;
};

/** Append a cast of `ref`. */
export const appendCast = (builder: GraphBuilder, ref: ValueRef, dtype: "f16" | "f32", origin: Origin): ValueRef => {
  const { shape } = builder.nodes[ref.node]!.specs[ref.output]!;
  return {
    node: builder.add({
      op: castOperator.name,
      inputs: [ref],
      params: { dtype },
      specs: [{ dtype, shape }],
      ...origin,
    }),
    output: 0,
  };
};

/** Copy a node with operands `positions` cast to `dtype`, and bring its results back to the dtypes that they had. */
export const copyCast = (
  builder: GraphBuilder,
  node: Node,
  {
    positions,
    dtype,
    params,
  }: { readonly positions: readonly number[]; readonly dtype: "f16" | "f32"; readonly params: Node["params"] },
): void => {
  const inputs = node.inputs.map((old, i) => {
    const ref = builder.resolve(old);
    return positions.includes(i) ? appendCast(builder, ref, dtype, originOf(node)) : ref;
  });
  const specs = operators[node.op]!.infer(
    inputs.map((ref) => builder.nodes[ref.node]!.specs[ref.output]!),
    params,
  );
  const id = builder.add({ ...node, inputs, params, specs });
  node.specs.forEach((spec, output) => {
    const now = { node: id, output };
    const same = specs[output]!.dtype === spec.dtype;
    builder.map(
      { node: node.id, output },
      same ? now : appendCast(builder, now, spec.dtype as "f16" | "f32", originOf(node)),
    );
  });
};

export interface MixedPrecisionOptions {
  /** What stays f32, by where it comes from: the exchange of gradients, the optimizer. Default: nothing. */
  readonly keeps?: (origin: Origin) => boolean;
}

/**
 * Let products (matmul, convolution, attention) read f16 operands and store f16 results, with sums in f32; everything
 * else stays f32, and the casts fuse into its kernels. What leads to no other product, such as the gradient of a
 * weight, is stored as f32.
 *
 * Products in compositions of users' operators stay f32: those take the place of their nodes when a backend compiles
 * the graph, which is later.
 *
 * Half the bytes of saved activations, and tensor cores where the device has them. Gradients below 6e-8 vanish in f16:
 * scale the loss (see `dynamicLossScale`). Apply to a whole training step, after differentiation.
 *
 * Source: Micikevicius et al. 2017, "Mixed Precision Training", arXiv:1710.03740.
 */
export const mixedPrecision = (source: Graph, { keeps = () => false }: MixedPrecisionOptions = {}): Graph => {
  const graph = eliminateDeadCode(simplify(source)); // transposed operands become flags before casts come between
  const feeds = feedsProducts(graph);
  const builder = new GraphBuilder();
  for (const node of graph.nodes) {
    const positions = halfOperandsOf(node);
    const isProduct =
      positions.length > 0 && !keeps(node) && positions.every((i) => specOf(graph, node.inputs[i]!).dtype === "f32");
    if (!isProduct) builder.copy(node);
    else {
      const wide = operators[node.op]!.choosesResult === true && !feeds[node.id]!;
      copyCast(builder, node, {
        positions,
        dtype: "f16",
        params: wide ? { ...node.params, resultDtype: "f32" } : node.params,
      });
    }
  }
  return builder.finish(graph);
};
