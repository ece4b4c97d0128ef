import { full } from "../functions/elementwise.ts";
import { invertPermutation, permuteRows, scatterAdd } from "../functions/indexing.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { indexedShape, indexedSizes, invalidValue } from "./shared/indexing.ts";

export type GatherParams = {
  readonly dim: number;
  readonly outside: "invalid" | "zero";
  readonly permutation?: boolean;
};

/**
 * Selects rows of `x` along `dim` by `indices` (i32). An index out of range gives the invalid value of the dtype (NaN
 * for floats, see `gather` in `functions/indexing.ts`), or 0 if `outside` is "zero". The gradient is a scatter-add. If
 * `permutation` is true, which guarantees that each row is selected exactly once, the gradient is a gather by the
 * inverse permutation.
 */
export const gatherOperator: Operator = defineOperator<GatherParams>({
  name: "gather",
  layer: ({ params: { dim, permutation } }) =>
    dim === 0 && permutation !== true ? [{ kind: "embedding", input: 1, weight: 0 }] : [],
  infer: ([x, indices], { dim }) => [{ dtype: x!.dtype, shape: indexedShape("gather", x!, indices!, dim) }],
  vjp: ({ inputs: [x, indices], cotangents: [g], params: { dim, permutation } }) => {
    if (permutation === true) return [permuteRows(g!, invertPermutation(indices!), { dim }), undefined];
    if (x!.dtype === "f32") return [scatterAdd(full(x!.shape, 0), indices!, g!, { dim }), undefined];
    // Add rows in f32, because 16-bit floats are storage types.
    const wide = scatterAdd(full(x!.shape, 0), indices!, emitOne("cast", [g!], { dtype: "f32" }), { dim });
    return [emitOne("cast", [wide], { dtype: x!.dtype }), undefined];
  },
  cost: ([, indices], [out]) => ({
    flops: 0,
    bytesRead: byteLength(indices!) + byteLength(out!),
    bytesWritten: byteLength(out!),
  }),
  reference: ([x, indices], { dim, outside }, [out]) => {
    const { outer, size, inner, count } = indexedSizes(x!.spec.shape, indices!.spec.shape, dim);
    const result = new Float64Array(elementCount(out!.shape)).fill(
      outside === "zero" ? 0 : invalidValue[x!.spec.dtype],
    );
    for (let block = 0; block < outer; block++) {
      for (let i = 0; i < count; i++) {
        const row = indices!.data[i]!;
        if (row >= 0 && row < size)
          result.set(
            x!.data.subarray((block * size + row) * inner, (block * size + row + 1) * inner),
            (block * count + i) * inner,
          );
      }
    }
    return [result];
  },
});
