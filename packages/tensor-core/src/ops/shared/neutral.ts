import type { RewriteRule } from "../../graph/rewrite-rule.ts";

/**
 * Drop an operand that changes nothing: `x · 1`, `x / 1`, `x − 0`, `x + 0`. The bits are the same, except that `x + 0`
 * keeps the sign of a zero that the addition would have made positive.
 */
export const neutral =
  (side: "either" | "right", value: number): RewriteRule =>
  ({ inputs: [a, b] }, { constantValue }) => {
    if (constantValue(b!) === value) return a!;
    return side === "either" && constantValue(a!) === value ? b! : undefined;
  };
