import { choleskyGradient } from "../functions/decomposition.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength } from "../shape.ts";
import { needSquares, squaresOf } from "./shared/matrices.ts";

/**
 * Lower Cholesky factors of symmetric matrices: `a = l lᵀ`, where l is lower triangular with a positive diagonal. Only
 * the lower triangle of `a` is read; the upper triangle of `l` is zero. If the matrix is not positive definite, the
 * entries `l[i][j]` with i ≥ j ≥ p are NaN, where p is the index of the first pivot that is not positive.
 *
 * Gradient: Murray 2016, arXiv 1602.07527, section 3.1.
 */
export const choleskyOperator: Operator = defineOperator({
  name: "cholesky",
  infer: ([a]) => {
    needSquares("cholesky", a!);
    return [a!];
  },
  vjp: ({ outputs: [l], cotangents: [g] }) => [choleskyGradient(l!, g!)],
  cost: ([a]) => {
    const { batch, size } = squaresOf(a!);
    return {
      flops: (batch * size * (size + 1) * (2 * size + 1)) / 6,
      bytesRead: byteLength(a!),
      bytesWritten: byteLength(a!),
    };
  },
  reference: ([a]) => {
    const { batch, size } = squaresOf(a!.spec);
    const l = new Float64Array(batch * size * size);
    for (let matrix = 0; matrix < batch; matrix++) {
      const offsetOf = (i: number, j: number): number => (matrix * size + i) * size + j;
      for (let i = 0; i < size; i++) {
        for (let j = 0; j <= i; j++) {
          let sum = a!.data[offsetOf(i, j)]!;
          for (let k = 0; k < j; k++) sum -= l[offsetOf(i, k)]! * l[offsetOf(j, k)]!;
          l[offsetOf(i, j)] = i > j ? sum / l[offsetOf(j, j)]! : sum > 0 ? Math.sqrt(sum) : NaN;
        }
      }
    }
    return [l];
  },
});
