import type { OperatorParams } from "@skein/tensor-core/backend";
import { refusesOtherThanF32 } from "../ops/convolution.ts";
import { productSizes } from "../ops/matmul.ts";
import { partBegin } from "../team/team.ts";
import { multiplyAddNanoseconds } from "../blas.ts";
import type { BlasRow } from "./blas-row.ts";

export const productVariant = (transposeA: boolean, transposeB: boolean): string =>
  `${transposeA ? "t" : "n"}${transposeB ? "t" : "n"}`;

/** Computes a batched product. Operands are dense and row-major, so the strides follow from the shapes. */
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
  kernel: (slices) => ({
    op: "matmul",
    refuses: refusesOtherThanF32,
    bind: (node, wasm, _, team) => {
      const { batch, rows, columns, inner } = productSizes(node);
      if (inner === 0) return (_, [y]) => void wasm["fill32"]!(y!, 0, batch * rows * columns); // empty sums are zeros
      const { transposeA, transposeB } = node.params;
      const [aStride, bStride] = [transposeA ? rows : inner, transposeB ? inner : columns];
      const [ta, tb] = [Number(transposeA), Number(transposeB)];
      const [aNext, bNext, yNext] = [rows * inner, inner * columns, rows * columns];
      const sgemm = team.indexOf("sgemm");
      const work = batch * rows * columns * inner * multiplyAddNanoseconds;
      const most = slices.most(rows);
      const parts = team.partsOf(work, Math.max(batch, most));
      // Whether to split the rows of every product, because whole products cannot be shared evenly.
      const byRows = most >= parts && batch % parts !== 0;
      const aRow = transposeA ? 1 : inner;
      return ([a, b], [y]) =>
        team.run(parts, (part, call) => {
          const [row, end] = byRows
            ? [slices.begin(rows, part, parts), slices.begin(rows, part + 1, parts)]
            : [0, rows];
          const first = byRows ? 0 : partBegin(batch, part, parts);
          const count = byRows ? batch : partBegin(batch, part + 1, parts) - first;
          if (end === row || count === 0) return;
          const [from, to] = [a! + 4 * (first * aNext + row * aRow), y! + 4 * (first * yNext + row * columns)];
          const weights = b! + 4 * first * bNext;
          call(
            sgemm,
            ta,
            tb,
            end - row,
            columns,
            inner,
            1,
            from,
            aStride,
            weights,
            bStride,
            0,
            to,
            columns,
            count,
            aNext,
            bNext,
            yNext,
          );
        });
    },
  }),
};
