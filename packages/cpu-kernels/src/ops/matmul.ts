import { elementCount } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";

/** Sizes of a product, of all operands of a batch alike. */
export const productSizes = (
  node: KernelNode<OperatorParams["matmul"]>,
): { batch: number; rows: number; columns: number; inner: number } => {
  const y = node.outputs[0]!.shape;
  return {
    batch: elementCount(y.slice(0, -2)),
    rows: y.at(-2)!,
    columns: y.at(-1)!,
    inner: node.inputs[0]!.shape.at(node.params.transposeA ? -2 : -1)!,
  };
};

/** Packed, register-tiled product; see `assembly/gemm.ts`. */
export const matmulKernel: Kernel = kernelOf({
  op: "matmul",
  refuses: refusesOtherThanF32,
  scratchBytes: (node) => {
    const { rows, columns, inner } = productSizes(node);
    return productScratchBytes(rows, columns, inner);
  },
  bind: (node, wasm) => {
    const { batch, rows, columns, inner } = productSizes(node);
    const transposeA = Number(node.params.transposeA);
    const transposeB = Number(node.params.transposeB);
    const run = wasm["gemmBatched"]!;
    return ([a, b], [y], scratch) => {
      run(a!, b!, y!, batch, rows, columns, inner, transposeA, transposeB, scratch);
    };
  },
});
