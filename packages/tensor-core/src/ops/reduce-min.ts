import type { Operator } from "../graph/operator.ts";
import { ordered } from "./elementwise.ts";
import { greatest, shareAmongTies } from "./extremum.ts";
import { reduction } from "./reduction.ts";

/** Least value over `dims`; NaN if any is NaN; the greatest value of the dtype where there is none. */
export const reduceMinOperator: Operator = reduction({
  name: "reduce-min",
  dtypes: ordered,
  empty: greatest,
  combine: (a, b) => Math.min(a, b),
  vjp: shareAmongTies,
});
