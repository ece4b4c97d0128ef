import { ordered } from "../dtype.ts";
import { where } from "../functions/elementwise.ts";
import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { byteLength, elementCount, formatSpec, sameShape } from "../shape.ts";

const whereDecided: RewriteRule = ({ inputs: [condition, a, b] }, { constantValue }) => {
  if (a!.node === b!.node && a!.output === b!.output) return a!;
  const holds = constantValue(condition!);
  return holds === undefined ? undefined : holds !== 0 ? a! : b!;
};

/** Selects `a` if the bool `condition` is true, otherwise `b`. Elementwise, although operand dtypes differ. */
export const whereOperator: Operator = defineOperator({
  name: "where",
  rewrites: [whereDecided],
  infer: ([condition, a, b]) => {
    if (condition!.dtype !== "bool")
      throw new ShapeError(
        "where",
        `the condition must be bool, got ${formatSpec(condition!)}; compare it, for example notEqual(x, 0)`,
      );
    if (!ordered.includes(a!.dtype))
      throw new ShapeError(
        "where",
        `dtype ${a!.dtype} is not supported, expected ${ordered.join(", ")}; cast the operand first`,
      );
    if (a!.dtype !== b!.dtype || !sameShape(a!.shape, b!.shape) || !sameShape(a!.shape, condition!.shape)) {
      throw new ShapeError(
        "where",
        `operands ${formatSpec(condition!)}, ${formatSpec(a!)} and ${formatSpec(b!)} do not fit; both branches need the same dtype, and all three operands the same shape`,
      );
    }
    return [{ dtype: a!.dtype, shape: a!.shape }];
  },
  vjp: ({ inputs: [condition], cotangents: [g] }) => [undefined, where(condition!, g!, 0), where(condition!, 0, g!)],
  cost: (inputs, [output]) => ({
    flops: elementCount(output!.shape),
    bytesRead: inputs.reduce((total, input) => total + byteLength(input), 0),
    bytesWritten: byteLength(output!),
  }),
  scalar: ([condition, a, b]) => (condition ? a! : b!),
  reference: ([condition, a, b]) => [condition!.data.map((holds, i) => (holds ? a!.data[i]! : b!.data[i]!))],
});
