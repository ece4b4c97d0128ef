import type { RewriteRule } from "../../graph/rewrite-rule.ts";

/**
 * Creates a rule that removes a neutral operand: `x · 1`, `x / 1`, `x − 0`, `x + 0` become `x`. Exact, except that
 * `x + 0` would convert −0 to +0, and the rule keeps −0.
 */
export const neutral =
  (side: "either" | "right", value: number): RewriteRule =>
  ({ inputs: [a, b] }, { constantValue }) => {
    if (constantValue(b!) === value) return a!;
    return side === "either" && constantValue(a!) === value ? b! : undefined;
  };
