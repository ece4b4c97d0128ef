import type { ParamValue } from "../../graph/graph.ts";
import type { RewriteRule } from "../../graph/rewrite-rule.ts";
import { sameShape } from "../../shape.ts";

// Rewrite rules that several operators have which move elements without computing on them. All are exact.

/** A list of numbers of another node. */
export const listOf = (value: ParamValue | undefined): readonly number[] => value as readonly number[];

export const passThrough: RewriteRule = ({ inputs }) => inputs[0]!;

/** An operator that only moves elements leaves a constant a constant. */
export const ofConstant: RewriteRule = ({ inputs, specs }, { constantValue, constant }) => {
  const value = constantValue(inputs[0]!);
  return value === undefined ? undefined : constant(specs[0]!, value);
};

export const sameSpecAsOperand: RewriteRule = ({ inputs, specs }, { spec }) =>
  sameShape(spec(inputs[0]!).shape, specs[0]!.shape) ? inputs[0]! : undefined;

/** To another dtype that is the same. */
export const castToOwn: RewriteRule = ({ inputs, specs }, { spec }) =>
  spec(inputs[0]!).dtype === specs[0]!.dtype ? inputs[0]! : undefined;
