import type { Operator } from "../graph/operator.ts";
import { arithmetic } from "./elementwise.ts";
import { reduction, stretchBack } from "./reduction.ts";

/** Sum over `dims`; integers wrap, nothing sums to 0. */
export const sumOperator: Operator = reduction({
  name: "sum",
  dtypes: arithmetic,
  empty: () => 0,
  combine: (a, b) => a + b,
  vjp: ({ inputs: [x], cotangents: [g], params: { dims } }) => [stretchBack(g!, x!.shape, dims)],
});
