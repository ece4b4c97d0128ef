import type { Operator } from "../graph/operator.ts";
import { argReduction } from "./shared/arg-reduction.ts";

/** Index (i32) of the minimum along `dim`, the first among equals; a NaN counts as the minimum. */
export const argminOperator: Operator = argReduction("argmin", (a, b) => a < b);
