import { arithmetic } from "../dtype.ts";
import { negate } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { elementwise } from "./shared/elementwise.ts";

const negateOfNegate: RewriteRule = ({ inputs }, { producer }) => {
  const inner = producer(inputs[0]!);
  return inner.op === "negate" ? inner.inputs[0]! : undefined;
};

/** Negation, `-x`; integers wrap around. */
export const negateOperator: Operator = elementwise({
  name: "negate",
  rewrites: [negateOfNegate],
  arity: 1,
  dtypes: arithmetic,
  scalar: ([x]) => -x!,
  vjp: ({ cotangents: [g] }) => [negate(g!)],
});
