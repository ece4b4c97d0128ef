import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./shared/elementwise.ts";

/** Shift left: `a · 2^b` modulo 2³²; `b` is taken modulo 32. */
export const shiftLeftOperator: Operator = elementwise({
  name: "shift-left",
  arity: 2,
  dtypes: ["i32", "u32"],
  scalar: ([a, b]) => a! << b!,
});
