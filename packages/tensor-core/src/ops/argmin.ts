import type { Operator } from "../graph/operator.ts";
import { argReduction } from "./shared/arg-reduction.ts";

/** Index (i32) of the minimum along `dim`, the first index if several are equal. NaN is treated as the minimum. */
export const argminOperator: Operator = argReduction("argmin", (a, b) => a < b);
