import { ordered } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { greatest, shareAmongTies } from "./shared/extremum.ts";
import { reduction, trailingFold } from "./shared/reduction.ts";

/** Minimum over `dims`; NaN if any entry is NaN; the largest value of the dtype if there are no entries. */
export const reduceMinOperator: Operator = reduction({
  name: "reduce-min",
  fold: trailingFold,
  dtypes: ordered,
  empty: greatest,
  combine: (a, b) => Math.min(a, b),
  vjp: shareAmongTies,
});
