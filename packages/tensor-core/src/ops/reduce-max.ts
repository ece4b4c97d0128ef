import type { Operator } from "../graph/operator.ts";
import { ordered } from "./elementwise.ts";
import { least, shareAmongTies } from "./extremum.ts";
import { reduction } from "./reduction.ts";

/** Greatest value over `dims`; NaN if any is NaN; the least value of the dtype where there is none. */
export const reduceMaxOperator: Operator = reduction({
  name: "reduce-max",
  dtypes: ordered,
  empty: least,
  combine: (a, b) => Math.max(a, b),
  vjp: shareAmongTies,
});
