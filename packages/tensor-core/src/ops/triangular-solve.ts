import { InvariantError, ShapeError } from "../errors.ts";
import { solveGradients } from "../functions/decomposition.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, formatShape, formatSpec, sameShape } from "../shape.ts";
import { needSquares, squaresOf } from "./shared/matrices.ts";

export type TriangularSolveParams = {
  readonly lower: boolean;
  readonly transpose: boolean;
  readonly unitDiagonal: boolean;
};

/**
 * Solves `op(l) x = b` for triangular l [..., n, n] and b [..., n, m] over equal leading dimensions; op(l) is l or lᵀ.
 * Only the triangle selected by `lower` is read. If `unitDiagonal` is true, the diagonal is assumed to be ones and is
 * not read.
 */
export const triangularSolveOperator: Operator = defineOperator<TriangularSolveParams>({
  name: "triangular-solve",
  infer: ([l, b]) => {
    needSquares("triangularSolve", l!);
    if (b!.shape.length !== l!.shape.length || !sameShape(b!.shape.slice(0, -2), l!.shape.slice(0, -2)))
      throw new InvariantError(
        `triangular-solve node with operands ${formatShape(l!.shape)} and ${formatShape(b!.shape)}, whose leading dimensions must be equal`,
      );
    if (b!.dtype !== "f32" || b!.shape.at(-2) !== l!.shape.at(-1))
      throw new ShapeError(
        "triangularSolve",
        `${formatSpec(l!)} and ${formatSpec(b!)} do not fit: the right side must be f32 [..., n, m] with as many rows as the triangle, here ${l!.shape.at(-1)}; reshape a vector to [n, 1]`,
      );
    return [b!];
  },
  vjp: ({ inputs: [l], outputs: [x], cotangents: [g], params }) => solveGradients(l!, x!, g!, params),
  cost: ([l, b], [x]) => {
    const { batch, size } = squaresOf(l!);
    return {
      flops: batch * size * size * b!.shape.at(-1)!,
      bytesRead: byteLength(l!) / 2 + byteLength(b!),
      bytesWritten: byteLength(x!),
    };
  },
  reference: ([l, b], { lower, transpose, unitDiagonal }) => {
    const { batch, size } = squaresOf(l!.spec);
    const columns = b!.spec.shape.at(-1)!;
    const x = Float64Array.from(b!.data);
    for (let matrix = 0; matrix < batch; matrix++) {
      const entry = (i: number, k: number): number =>
        l!.data[(matrix * size + (transpose ? k : i)) * size + (transpose ? i : k)]!;
      for (let step = 0; step < size; step++) {
        const i = lower !== transpose ? step : size - 1 - step;
        for (let column = 0; column < columns; column++) {
          const offsetOf = (row: number): number => (matrix * size + row) * columns + column;
          let sum = x[offsetOf(i)]!;
          for (let done = 0; done < step; done++) {
            const k = lower !== transpose ? done : size - 1 - done;
            sum -= entry(i, k) * x[offsetOf(k)]!;
          }
          x[offsetOf(i)] = unitDiagonal ? sum : sum / entry(i, i);
        }
      }
    }
    return [x];
  },
});
