import { ordered } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { greatest, shareAmongTies } from "./shared/extremum.ts";
import { reduction, trailingFold } from "./shared/reduction.ts";

/** Least value over `dims`; NaN if any is NaN; the greatest value of the dtype where there is none. */
export const reduceMinOperator: Operator = reduction({
  name: "reduce-min",
  fold: trailingFold,
  dtypes: ordered,
  empty: greatest,
  combine: (a, b) => Math.min(a, b),
  vjp: shareAmongTies,
});
