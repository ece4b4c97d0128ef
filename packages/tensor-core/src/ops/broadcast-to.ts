import { ShapeError } from "../errors.ts";
import { broadcastDims, sumTo } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { byteLength, elementCount, formatShape, rowMajorStrides } from "../shape.ts";
import { readStrided } from "./shared/strided.ts";
import { ofConstant, sameSpecAsOperand } from "./shared/movement-rules.ts";

/** Replaces a broadcast that only adds dimensions of size 1 by a reshape. */
const broadcastAsReshape: RewriteRule = ({ inputs, specs }, { spec, emit }) =>
  elementCount(spec(inputs[0]!).shape) === elementCount(specs[0]!.shape)
    ? emit("reshape", inputs, { shape: specs[0]!.shape })
    : undefined;

const broadcastOfBroadcast: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  return inner.op === "broadcast-to" ? derive(node, inner.inputs) : undefined;
};

export type BroadcastToParams = { readonly shape: readonly number[] };

/**
 * Broadcasts `x` to `shape`: repeats `x` along new leading dimensions and along dimensions of size 1. The gradient is
 * summed over the repeated dimensions.
 */
export const broadcastToOperator: Operator = defineOperator<BroadcastToParams>({
  name: "broadcast-to",
  stretches: true,
  rewrites: [sameSpecAsOperand, ofConstant, broadcastAsReshape, broadcastOfBroadcast],
  infer: ([x], { shape }) => {
    const lead = shape.length - x!.shape.length;
    if (lead < 0 || x!.shape.some((size, dim) => size !== 1 && size !== shape[dim + lead])) {
      throw new ShapeError(
        "broadcast-to",
        `${formatShape(x!.shape)} does not broadcast to ${formatShape(shape)}: aligned at the last dimension, each size must be equal or 1; reshape it first`,
      );
    }
    return [{ dtype: x!.dtype, shape: [...shape] }];
  },
  vjp: ({ inputs: [x], cotangents: [g] }) => [sumTo(g!, x!.shape)],
  cost: ([x], [out]) => ({ flops: 0, bytesRead: byteLength(x!), bytesWritten: byteLength(out!) }),
  reference: ([x], { shape }) => {
    const own = rowMajorStrides(x!.spec.shape);
    const lead = shape.length - own.length;
    const repeated = new Set(broadcastDims(x!.spec.shape, shape));
    return [
      readStrided(
        x!.data,
        shape,
        shape.map((_, dim) => (repeated.has(dim) ? 0 : own[dim - lead]!)),
      ),
    ];
  },
});
