import { roundToStorage, arithmetic } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { elementCount } from "../shape.ts";
import { reduction, type ReductionParams, broadcastBack, trailingFold } from "./shared/reduction.ts";

/** Replaces the sum of a constant by a product. */
const sumOfConstant: RewriteRule<ReductionParams> = ({ inputs, specs }, { constantValue, constant, spec }) => {
  const value = constantValue(inputs[0]!);
  const total = elementCount(spec(inputs[0]!).shape);
  const numResults = elementCount(specs[0]!.shape);
  if (value === undefined || numResults === 0) return undefined;
  const terms = total / numResults;
  // Above 2^53, the f64 product loses the low bits, which a wrapping integer sum needs.
  if (specs[0]!.dtype !== "f32" && !Number.isSafeInteger(value * terms)) return undefined;
  return constant(specs[0]!, terms === 0 ? 0 : roundToStorage(value * terms, specs[0]!.dtype));
};

/** Sum over `dims`; integers wrap around; 0 if there are no entries. */
export const sumOperator: Operator = reduction({
  name: "sum",
  fold: trailingFold,
  rewrites: [sumOfConstant],
  dtypes: arithmetic,
  empty: () => 0,
  combine: (a, b) => a + b,
  vjp: ({ inputs: [x], cotangents: [g], params: { dims } }) => [broadcastBack(g!, x!.shape, dims)],
});
