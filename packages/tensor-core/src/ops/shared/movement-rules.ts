import type { ParamValue } from "../../graph/graph.ts";
import type { RewriteRule } from "../../graph/rewrite-rule.ts";
import { sameShape } from "../../shape.ts";

// Rewrite rules shared by operators that move elements without arithmetic. All rules are exact.

/** Narrows the type of a node parameter that is known to be a list of numbers. */
export const listOf = (value: ParamValue | undefined): readonly number[] => value as readonly number[];

export const passThrough: RewriteRule = ({ inputs }) => inputs[0]!;

/** Replaces an operator on a constant by a constant with the result's shape. */
export const ofConstant: RewriteRule = ({ inputs, specs }, { constantValue, constant }) => {
  const value = constantValue(inputs[0]!);
  return value === undefined ? undefined : constant(specs[0]!, value);
};

export const sameSpecAsOperand: RewriteRule = ({ inputs, specs }, { spec }) =>
  sameShape(spec(inputs[0]!).shape, specs[0]!.shape) ? inputs[0]! : undefined;

/** Removes a cast to the dtype of the operand. */
export const castToOwn: RewriteRule = ({ inputs, specs }, { spec }) =>
  spec(inputs[0]!).dtype === specs[0]!.dtype ? inputs[0]! : undefined;
