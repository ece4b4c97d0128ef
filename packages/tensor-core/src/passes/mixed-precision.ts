import type { HalfDType } from "../dtype.ts";
import { type Graph, GraphBuilder, type Node, type Origin, originOf, specOf, type ValueRef } from "../graph/graph.ts";
import { castOperator } from "../ops/cast.ts";
import { operators } from "../ops/table.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { simplify } from "./simplify.ts";

const halfOperandsOf = (node: Node): readonly number[] => operators[node.op]?.halfOperands ?? [];

/** For each node, returns whether a product depends on the node, directly or through other nodes. */
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

/** Appends a cast of value `ref` to `dtype`. Returns the result. */
export const appendCast = (
  builder: GraphBuilder,
  ref: ValueRef,
  dtype: HalfDType | "f32",
  origin: Origin,
): ValueRef => {
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

/**
 * Copies a node, casts the operands at indices `positions` to `dtype`, and casts the results back to their original
 * dtypes.
 */
export const copyCast = (
  builder: GraphBuilder,
  node: Node,
  {
    positions,
    dtype,
    params,
  }: { readonly positions: readonly number[]; readonly dtype: HalfDType | "f32"; readonly params: Node["params"] },
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
      same ? now : appendCast(builder, now, spec.dtype as HalfDType | "f32", originOf(node)),
    );
  });
};

export interface MixedPrecisionOptions {
  /** Dtype of operands and results of products. Default: "f16". */
  readonly dtype?: HalfDType;
  /**
   * Returns whether nodes with the given origin stay f32, such as nodes of the gradient exchange or of the optimizer.
   * Default: no node stays f32.
   */
  readonly keeps?: (origin: Origin) => boolean;
}

/**
 * Mixed precision: products (matmul, convolution, attention) read 16-bit operands and write 16-bit results, with sums
 * in f32. All other operators stay f32, and the casts are fused into other kernels. A product result on which no other
 * product depends, such as a weight gradient, is f32.
 *
 * Products in compositions of users' operators stay f32, because compositions are inserted later, when a backend
 * compiles the graph.
 *
 * Saved operands of products need half the memory. A value that other operators also read is additionally saved as f32.
 * f16 uses tensor cores if the device has them. Gradients below 6e-8 underflow in f16: scale the loss (see
 * `dynamicLossScale`). bf16 has the range of f32, so bf16 needs no loss scale, but bf16 has only 8 bits of precision;
 * f16 has 11 bits. Neither WebGPU nor WebAssembly has bf16 arithmetic, so bf16 products are computed in f32 from
 * rounded operands (`widenHalf`), without speedup. Apply this pass to a whole training step, after differentiation.
 *
 * @example
 * ```ts
 * const passes = [(graph: Graph) => mixedPrecision(graph, { dtype: "bf16" })];
 * const product = (a: Tensor, b: Tensor) => matmul(a, b);
 * const [a, b] = [NdArray.from([3], [1, 1]), NdArray.from([2], [1, 1])];
 * const y = await evaluate(product, referenceBackend(), { passes })(a, b);
 * console.log(y.toNumbers()); // [6]
 * ```
 * Source: Micikevicius et al. 2017, "Mixed Precision Training", arXiv:1710.03740; bf16: Kalamkar et al. 2019, "A Study
 * of BFLOAT16 for Deep Learning Training", arXiv:1905.12322.
 */
export const mixedPrecision = (
  source: Graph,
  { dtype = "f16", keeps = () => false }: MixedPrecisionOptions = {},
): Graph => {
  const graph = eliminateDeadCode(simplify(source)); // turns transposes into flags before casts are added
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
        dtype,
        params: wide ? { ...node.params, resultDtype: "f32" } : node.params,
      });
    }
  }
  return builder.finish(graph);
};
