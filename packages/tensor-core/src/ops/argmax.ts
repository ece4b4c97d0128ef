import type { Operator } from "../graph/operator.ts";
import { argReduction } from "./shared/arg-reduction.ts";

/** Index (i32) of the maximum along `dim`, the first index if several are equal. NaN is treated as the maximum. */
export const argmaxOperator: Operator = argReduction("argmax", (a, b) => a > b);
