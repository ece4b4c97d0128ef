import { elementCount } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { alignUp } from "../arena.ts";
import { maxColumnParts } from "../column-parts.ts";
import { multiplyAddNanoseconds, productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { partBegin } from "../team/team.ts";
import { refusesOtherThanF32 } from "./convolution.ts";

/** Returns the sizes of a product, which are equal for all products of a batch. */
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

/** Number of products per thread above which the imbalance caused by one product is negligible. */
const manyProducts = 4;

/**
 * Nanoseconds per multiply-add of a product with one row or one column, in one thread. The speed of such a product is
 * limited by reading the matrix once.
 */
const vectorTermNanoseconds = 1 / 10;

/** Returns the scratch bytes of one part. */
const scratchOf = (node: KernelNode<OperatorParams["matmul"]>): number => {
  const { rows, columns, inner } = productSizes(node);
  return alignUp(productScratchBytes(rows, columns, inner));
};

/** Computes a packed, register-tiled product; see `assembly/gemm.ts`. */
export const matmulKernel: Kernel = kernelOf({
  op: "matmul",
  refuses: refusesOtherThanF32,
  scratchBytes: (node, threads) => threads * scratchOf(node),
  bind: (node, _, __, team) => {
    const { batch, rows, columns, inner } = productSizes(node);
    const flags = [Number(node.params.transposeA), Number(node.params.transposeB)];
    const scratchBytes = scratchOf(node);
    const isMatrix = rows > 1 && columns > 1;
    const work = batch * rows * columns * inner * (isMatrix ? multiplyAddNanoseconds : vectorTermNanoseconds);
    const maxVectorParts = maxColumnParts(Math.max(rows, columns));
    const parts = team.partsOf(work, isMatrix ? Infinity : Math.max(batch, maxVectorParts));
    const canCutProducts = isMatrix || parts <= maxVectorParts;
    if (!canCutProducts || batch % parts === 0 || batch >= manyProducts * parts) {
      const products = team.indexOf("gemmBatched");
      return ([a, b], [y], scratch) =>
        team.run(parts, (part, call) => {
          const first = partBegin(batch, part, parts);
          call(
            products,
            a! + 4 * first * rows * inner,
            b! + 4 * first * inner * columns,
            y! + 4 * first * rows * columns,
            partBegin(batch, part + 1, parts) - first,
            rows,
            columns,
            inner,
            ...flags,
            scratch + part * scratchBytes,
          );
        });
    }
    const product = team.indexOf("gemmPart");
    return ([a, b], [y], scratch) =>
      team.run(parts, (part, call) => {
        for (let i = 0; i < batch; i++)
          call(
            product,
            a! + 4 * i * rows * inner,
            b! + 4 * i * inner * columns,
            y! + 4 * i * rows * columns,
            rows,
            columns,
            inner,
            ...flags,
            0,
            scratch + part * scratchBytes,
            part,
            parts,
          );
      });
  },
});
