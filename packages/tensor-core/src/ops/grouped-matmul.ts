import { ShapeError } from "../errors.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import { groupRanges, needGroups } from "./shared/grouped-rows.ts";

export type GroupedMatmulParams = { readonly transposeW: boolean };

/**
 * Grouped matrix product `y[r] = x[r] · w[g]` for the rows r of each group g. Groups are consecutive, and `counts` (i32
 * [groups]) is the number of rows per group. Negative counts are treated as 0, and counts are limited to the remaining
 * rows, in group order. Rows after the last group have result 0.
 * Cost: assumes that each row belongs to a group.
 */
export const groupedMatmulOperator: Operator = defineOperator<GroupedMatmulParams>({
  name: "grouped-matmul",
  layer: () => [{ kind: "linear", input: 0, weight: 1 }],
  infer: ([x, w, counts], { transposeW }) => {
    if (w!.dtype !== "f32" || w!.shape.length !== 3)
      throw new ShapeError(
        "groupedMatmul",
        `weights are ${formatSpec(w!)}, expected f32 of rank 3, one matrix per group; cast or stack them`,
      );
    const [groups, first, second] = w!.shape as [number, number, number];
    needGroups("groupedMatmul", x!, counts!, groups);
    const [inner, columns] = transposeW ? [second, first] : [first, second];
    if (x!.shape[1] !== inner)
      throw new ShapeError(
        "groupedMatmul",
        `${formatSpec(x!)} and ${formatSpec(w!)}${transposeW ? " (transposed)" : ""} do not fit: rows have width ${x!.shape[1]}, but matrices need width ${inner}; transpose the weights, or pass rows of width ${inner}`,
      );
    return [{ dtype: "f32", shape: [x!.shape[0]!, columns] }];
  },
  vjp: ({ inputs: [x, w, counts], cotangents: [g], params: { transposeW } }) => [
    emitOne("grouped-matmul", [g!, w!, counts!], { transposeW: !transposeW }),
    emitOne("grouped-matmul-backward-weight", transposeW ? [g!, x!, counts!] : [x!, g!, counts!], {}),
    undefined,
  ],
  cost: ([x, w, counts], [y]) => ({
    flops: 2 * elementCount(y!.shape) * x!.shape[1]!,
    bytesRead: byteLength(x!) + byteLength(w!) + byteLength(counts!),
    bytesWritten: byteLength(y!),
  }),
  reference: ([x, w, counts], { transposeW }, [y]) => {
    const [rows, columns] = y!.shape as [number, number];
    const inner = x!.spec.shape[1]!;
    const [innerStep, columnStep] = transposeW ? [1, inner] : [columns, 1];
    const result = new Float64Array(rows * columns);
    groupRanges(counts!.data, rows).forEach(({ begin, end }, group) => {
      for (let row = begin; row < end; row++) {
        for (let column = 0; column < columns; column++) {
          let sum = 0;
          for (let k = 0; k < inner; k++)
            sum += x!.data[row * inner + k]! * w!.data[group * inner * columns + k * innerStep + column * columnStep]!;
          result[row * columns + column] = sum;
        }
      }
    });
    return [result];
  },
});
