import type { Operator } from "../graph/operator.ts";
import { argReduction } from "./shared/arg-reduction.ts";

/** Position (i32) of the least value along `dim`, the first among equals; NaN counts as least. */
export const argminOperator: Operator = argReduction("argmin", (a, b) => a < b);
