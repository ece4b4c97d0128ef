import { ShapeError } from "../errors.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import { groupRanges, needGroups } from "./shared/grouped-rows.ts";

/**
 * Gradient of `grouped-matmul` with respect to the weight: `dw[g] = Σ_r x[r]ᵀ · dy[r]` over the rows r of group g;
 * zeros for a group without rows.
 */
export const groupedMatmulBackwardWeightOperator: Operator = defineOperator({
  name: "grouped-matmul-backward-weight",
  infer: ([x, g, counts]) => {
    const groups = counts!.shape[0] ?? 0;
    needGroups("grouped-matmul-backward-weight", x!, counts!, groups);
    needGroups("grouped-matmul-backward-weight", g!, counts!, groups);
    if (x!.shape[0] !== g!.shape[0])
      throw new ShapeError(
        "grouped-matmul-backward-weight",
        `${formatSpec(x!)} and ${formatSpec(g!)} do not fit: they must have the same number of rows; pass a gradient for each row`,
      );
    return [{ dtype: "f32", shape: [groups, x!.shape[1]!, g!.shape[1]!] }];
  },
  vjp: ({ inputs: [x, g, counts], cotangents: [c] }) => [
    emitOne("grouped-matmul", [g!, c!, counts!], { transposeW: true }),
    emitOne("grouped-matmul", [x!, c!, counts!], { transposeW: false }),
    undefined,
  ],
  cost: ([x, g, counts], [dw]) => ({
    flops: 2 * elementCount(x!.shape) * g!.shape[1]!,
    bytesRead: byteLength(x!) + byteLength(g!) + byteLength(counts!),
    bytesWritten: byteLength(dw!),
  }),
  reference: ([x, g, counts], _, [dw]) => {
    const [, inner, columns] = dw!.shape as [number, number, number];
    const result = new Float64Array(elementCount(dw!.shape));
    groupRanges(counts!.data, x!.spec.shape[0]!).forEach(({ begin, end }, group) => {
      for (let row = begin; row < end; row++)
        for (let k = 0; k < inner; k++)
          for (let column = 0; column < columns; column++)
            result[(group * inner + k) * columns + column]! +=
              x!.data[row * inner + k]! * g!.data[row * columns + column]!;
    });
    return [result];
  },
});
