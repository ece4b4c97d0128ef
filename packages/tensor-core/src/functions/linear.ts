import type { HalfDType } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import { checkOptions } from "../options.ts";
import type { Tensor } from "../graph/tensor.ts";
import { broadcastShapes, elementCount, formatShape, sameShape, type Shape } from "../shape.ts";

export interface MatmulOptions {
  /** Whether `a` is stored as [..., K, M]. Default: false. */
  readonly transposeA?: boolean;
  /** Whether `b` is stored as [..., N, K]. Default: false. */
  readonly transposeB?: boolean;
  /** Dtype of the result for f16 or bf16 operands. Default: dtype of the operands. */
  readonly resultDtype?: "f32" | HalfDType;
}

const withShape = (x: Tensor, shape: Shape): Tensor =>
  sameShape(x.shape, shape) ? x : emitOne("reshape", [x], { shape: [...shape] });

const broadcastBatch = (x: Tensor, batch: Shape): Tensor => {
  const shape = [...batch, ...x.shape.slice(-2)];
  return sameShape(x.shape, shape) ? x : emitOne("broadcast-to", [x], { shape });
};

/**
 * Multiplies matrices: `y[..., m, n] = Σₖ a[..., m, k] · b[..., k, n]`, either operand optionally transposed.
 *
 * @param a f32, or f16 or bf16 with sums in f32: [..., M, K] ([..., K, M] when transposed), e.g. activations [64, 128,
 * 768].
 * @param b dtype of `a`, [..., K, N] ([..., N, K] when transposed), e.g. a weight [768, 3072].
 * @returns [..., M, N] with the operands' dtype, unless `resultDtype` is given. Leading dimensions broadcast as in
 * `add`. If `b` is a single matrix, the leading dimensions of `a` are merged into its rows, so that only one product
 * runs and `b` is not copied.
 * @throws ShapeError if an operand is not a matrix, the inner dimensions differ, or the leading dimensions do not
 * match. Cost: 2·M·N·K flops per matrix.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2, 3, 4], [2, 2]);
 * const y = NdArray.from([1, 0, 0, 1], [2, 2]);
 * const result = await evaluate(matmul, referenceBackend())(x, y);
 * console.log(result.toNumbers()); // [1, 2, 3, 4]
 * ```
 */
export const matmul = (a: Tensor, b: Tensor, options: MatmulOptions = {}): Tensor => {
  const {
    transposeA = false,
    transposeB = false,
    resultDtype,
  } = checkOptions("matmul(a, b)", options, {
    transposeA: true,
    transposeB: true,
    resultDtype: true,
  });
  requireOperands("matmul", [a, b]);
  const product = (x: Tensor, y: Tensor): Tensor =>
    emitOne("matmul", [x, y], { transposeA, transposeB, ...(resultDtype && { resultDtype }) });
  if (a.rank < 2 || b.rank < 2) {
    throw new ShapeError(
      "matmul",
      `operands ${formatShape(a.shape)} and ${formatShape(b.shape)} must both have at least 2 dimensions; reshape a vector to [1, K] or [K, 1]`,
    );
  }
  const batchA = a.shape.slice(0, -2);
  const batchB = b.shape.slice(0, -2);
  if (sameShape(batchA, batchB)) return product(a, b);
  if (!transposeA && elementCount(batchB) === 1 && batchB.length <= batchA.length) {
    const inner = a.shape.at(-1)!;
    const rows = elementCount(a.shape.slice(0, -1));
    const y = product(withShape(a, [rows, inner]), withShape(b, b.shape.slice(-2)));
    return withShape(y, [...a.shape.slice(0, -1), y.shape[1]!]);
  }
  const batch = broadcastShapes(batchA, batchB, "matmul");
  return product(broadcastBatch(a, batch), broadcastBatch(b, batch));
};
