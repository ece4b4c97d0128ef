import { arithmetic } from "../dtype.ts";
import { negate } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { elementwise, infix } from "./shared/elementwise.ts";
import { neutral } from "./shared/neutral.ts";

/**
 * Replaces `x − scatter(v)` (onto zeros) by a scatter of `−v` onto `x`. Example: computing the residual of a sparse
 * encoder then costs only as much as the number of sent entries. Applies only if the indices are unique, as from
 * `top-k`, because sums with duplicate indices would be rounded differently.
 */
const subtractScattered: RewriteRule = ({ inputs: [a, b] }, { producer, constantValue, spec, derive, emit }) => {
  const scatter = producer(b!);
  if (scatter.op !== "scatter-add" || spec(b!).shape.length !== 1 || !Object.is(constantValue(scatter.inputs[0]!), 0))
    return undefined;
  const [, indices, updates] = scatter.inputs;
  if (producer(indices!).op !== "top-k" || spec(indices!).shape.length !== 1) return undefined;
  return derive(scatter, [a!, indices!, emit("negate", [updates!])]);
};

/** Difference `a - b`; integers wrap around. */
export const subtractOperator: Operator = elementwise({
  name: "subtract",
  formula: infix("-"),
  rewrites: [neutral("right", 0), subtractScattered],
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => a! - b!,
  vjp: ({ cotangents: [g] }) => [g!, negate(g!)],
});
