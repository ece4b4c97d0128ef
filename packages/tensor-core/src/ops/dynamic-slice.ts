import { zerosLike } from "../functions/elementwise.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, rowMajorStrides } from "../shape.ts";
import { needWindow, referenceOffset } from "./shared/dynamic-window.ts";
import { ofConstant, sameSpecAsOperand } from "./shared/movement-rules.ts";
import { readStrided } from "./shared/strided.ts";

export type DynamicSliceParams = { readonly sizes: readonly number[] };

/**
 * Slice of `x` with the sizes `sizes` that begins at `starts` (i32 [rank]). Each start is clamped to 0 … dim − size, as
 * in XLA, so that the slice is inside `x`. The gradient has zeros outside the slice.
 */
export const dynamicSliceOperator: Operator = defineOperator<DynamicSliceParams>({
  name: "dynamic-slice",
  rewrites: [sameSpecAsOperand, ofConstant],
  infer: ([x, starts], { sizes }) => {
    needWindow("dynamicSlice", x!, starts!, sizes);
    return [{ dtype: x!.dtype, shape: [...sizes] }];
  },
  vjp: ({ inputs: [x, starts], cotangents: [g] }) => [
    emitOne("dynamic-update-slice", [zerosLike(x!), g!, starts!], {}),
    undefined,
  ],
  cost: ([, starts], [y]) => ({
    flops: 0,
    bytesRead: byteLength(y!) + byteLength(starts!),
    bytesWritten: byteLength(y!),
  }),
  reference: ([x, starts], { sizes }) => [
    readStrided(x!.data, sizes, rowMajorStrides(x!.spec.shape), referenceOffset(x!, sizes, starts!)),
  ],
});
