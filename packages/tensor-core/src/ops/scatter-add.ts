import { arithmetic } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { gather } from "../functions/indexing.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec, sameShape } from "../shape.ts";
import { indexedShape, indexedSizes } from "./shared/indexing.ts";

export type ScatterAddParams = { readonly dim: number };

/**
 * Adds rows of `updates` to `base` along `dim` at `indices` (i32), in the order of `indices`. Indices out of range are
 * skipped.
 */
export const scatterAddOperator: Operator = defineOperator<ScatterAddParams>({
  name: "scatter-add",
  mayOverwrite: (_, input) => input === 0,
  infer: ([base, indices, updates], { dim }) => {
    const shape = indexedShape("scatter-add", base!, indices!, dim);
    if (!arithmetic.includes(base!.dtype))
      throw new ShapeError(
        "scatter-add",
        `dtype ${base!.dtype} is not supported, expected ${arithmetic.join(", ")}; cast the operands first`,
      );
    if (updates!.dtype !== base!.dtype || !sameShape(updates!.shape, shape)) {
      throw new ShapeError(
        "scatter-add",
        `updates ${formatSpec(updates!)} do not fit base ${formatSpec(base!)} with indices ${formatSpec(indices!)}; they must be ${formatSpec({ dtype: base!.dtype, shape })}`,
      );
    }
    return [{ dtype: base!.dtype, shape: base!.shape }];
  },
  vjp: ({ inputs: [, indices], cotangents: [g], params: { dim } }) => [
    g!,
    undefined,
    gather(g!, indices!, { dim, outside: "zero" }),
  ],
  cost: ([base, indices, updates]) => ({
    flops: elementCount(updates!.shape),
    bytesRead: byteLength(base!) + byteLength(indices!) + 2 * byteLength(updates!),
    bytesWritten: byteLength(base!) + byteLength(updates!),
  }),
  reference: ([base, indices, updates], { dim }) => {
    const { outer, size, inner, count } = indexedSizes(base!.spec.shape, indices!.spec.shape, dim);
    const result = base!.data.slice();
    for (let block = 0; block < outer; block++) {
      for (let i = 0; i < count; i++) {
        const row = indices!.data[i]!;
        if (row < 0 || row >= size) continue;
        for (let j = 0; j < inner; j++)
          result[(block * size + row) * inner + j]! += updates!.data[(block * count + i) * inner + j]!;
      }
    }
    return [result];
  },
});
