import { ordered } from "../dtype.ts";
import type { Operator } from "../graph/operator.ts";
import { least, shareAmongTies } from "./shared/extremum.ts";
import { reduction, trailingFold } from "./shared/reduction.ts";

/** Maximum over `dims`; NaN if any entry is NaN; the smallest value of the dtype if there are no entries. */
export const reduceMaxOperator: Operator = reduction({
  name: "reduce-max",
  fold: trailingFold,
  dtypes: ordered,
  empty: least,
  combine: (a, b) => Math.max(a, b),
  vjp: shareAmongTies,
});
