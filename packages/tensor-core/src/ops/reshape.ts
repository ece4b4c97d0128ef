import { ShapeError } from "../errors.ts";
import { reshape } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { elementCount, formatShape } from "../shape.ts";
import { ofConstant, sameSpecAsOperand } from "./shared/movement-rules.ts";
import { moveCost } from "./shared/strided.ts";

/** Replaces `reshape(reshape(x))` by one reshape of x. */
const reshapeOfReshape: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  return inner.op === "reshape" ? derive(node, inner.inputs) : undefined;
};

export type ReshapeParams = { readonly shape: readonly number[] };

/** Returns the elements of x in the same row-major order with another shape. */
export const reshapeOperator: Operator = defineOperator<ReshapeParams>({
  name: "reshape",
  rearranges: true,
  keepsOrder: true,
  viewOffset: () => 0,
  rewrites: [sameSpecAsOperand, ofConstant, reshapeOfReshape],
  infer: ([x], { shape }) => {
    if (elementCount(shape) !== elementCount(x!.shape) || shape.some((size) => !Number.isInteger(size) || size < 0)) {
      throw new ShapeError(
        "reshape",
        `${formatShape(x!.shape)} has ${elementCount(x!.shape)} elements, ${formatShape(shape)} has ${elementCount(shape)}; both must have the same number, choose another shape`,
      );
    }
    return [{ dtype: x!.dtype, shape: [...shape] }];
  },
  vjp: ({ inputs: [x], cotangents: [g] }) => [reshape(g!, x!.shape)],
  cost: moveCost,
  reference: ([x]) => [x!.data.slice()],
});
