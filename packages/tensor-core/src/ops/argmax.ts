import type { Operator } from "../graph/operator.ts";
import { argReduction } from "./shared/arg-reduction.ts";

/** Position (i32) of the greatest value along `dim`, the first among equals; NaN counts as greatest. */
export const argmaxOperator: Operator = argReduction("argmax", (a, b) => a > b);
