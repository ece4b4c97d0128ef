import { ShapeError } from "../errors.ts";
import { zerosLike } from "../functions/elementwise.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { byteLength, formatSpec, rowMajorStrides, sameShape } from "../shape.ts";
import { needWindow, referenceOffset } from "./shared/dynamic-window.ts";
import { walkStrided } from "./shared/strided.ts";

const replacesAll: RewriteRule = ({ inputs, specs }, { spec }) =>
  sameShape(spec(inputs[1]!).shape, specs[0]!.shape) ? inputs[1]! : undefined;

/**
 * Replaces the slice of `x` that begins at `starts` (i32 [rank]) by `update`. Starts are clamped as in `dynamic-slice`.
 * Cost: assumes that the result is computed in place. If `x` is needed later, `x` is additionally copied.
 */
export const dynamicUpdateSliceOperator: Operator = defineOperator({
  name: "dynamic-update-slice",
  mayOverwrite: (_, input) => input === 0,
  rewrites: [replacesAll],
  infer: ([x, update, starts]) => {
    if (update!.dtype !== x!.dtype)
      throw new ShapeError(
        "dynamicUpdateSlice",
        `${formatSpec(update!)} cannot be written into ${formatSpec(x!)}; cast the update to ${x!.dtype}`,
      );
    needWindow("dynamicUpdateSlice", x!, starts!, update!.shape);
    return [x!];
  },
  vjp: ({ inputs: [, update, starts], cotangents: [g] }) => [
    emitOne("dynamic-update-slice", [g!, zerosLike(update!), starts!], {}),
    emitOne("dynamic-slice", [g!, starts!], { sizes: [...update!.shape] }),
    undefined,
  ],
  cost: ([, update, starts]) => ({
    flops: 0,
    bytesRead: byteLength(update!) + byteLength(starts!),
    bytesWritten: byteLength(update!),
  }),
  reference: ([x, update, starts]) => {
    const result = x!.data.slice();
    const { shape } = update!.spec;
    walkStrided(shape, rowMajorStrides(x!.spec.shape), referenceOffset(x!, shape, starts!), (position, place) => {
      result[place] = update!.data[position]!;
    });
    return [result];
  },
});
