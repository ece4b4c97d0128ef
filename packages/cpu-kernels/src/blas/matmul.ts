import type { OperatorParams } from "@skein/tensor-core/backend";
import { refusesOtherThanF32 } from "../ops/convolution.ts";
import { productSizes } from "../ops/matmul.ts";
import type { BlasRow } from "./blas-row.ts";

export const productVariant = (transposeA: boolean, transposeB: boolean): string =>
  `${transposeA ? "t" : "n"}${transposeB ? "t" : "n"}`;

/** Batched product. Operands lie whole, row by row, so the strides follow from the shapes. */
export const blasMatmul: BlasRow<OperatorParams["matmul"]> = {
  contraction: (node) => {
    const { rows, columns, inner } = productSizes(node);
    return {
      op: "matmul",
      variant: productVariant(node.params.transposeA, node.params.transposeB),
      rows,
      columns,
      inner,
    };
  },
  kernel: (sgemm) => ({
    op: "matmul",
    refuses: refusesOtherThanF32,
    bind: (node, wasm) => {
      const { batch, rows, columns, inner } = productSizes(node);
      if (inner === 0) return (_, [y]) => void wasm["fill32"]!(y!, 0, batch * rows * columns); // a sum of nothing
      const { transposeA, transposeB } = node.params;
      const [aStride, bStride] = [transposeA ? rows : inner, transposeB ? inner : columns];
      const [ta, tb] = [Number(transposeA), Number(transposeB)];
      const [aNext, bNext, yNext] = [rows * inner, inner * columns, rows * columns];
      return ([a, b], [y]) => {
        sgemm(ta, tb, rows, columns, inner, 1, a!, aStride, b!, bStride, 0, y!, columns, batch, aNext, bNext, yNext);
      };
    },
  }),
};
