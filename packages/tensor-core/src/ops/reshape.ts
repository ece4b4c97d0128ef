import { ShapeError } from "../errors.ts";
import { reshape } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount, formatShape } from "../shape.ts";
import { moveCost } from "./strided.ts";

/** The same elements in the same row-major order under another shape. */
export const reshapeOperator: Operator = defineOperator<{ shape: readonly number[] }>({
  name: "reshape",
  infer: ([x], { shape }) => {
    if (elementCount(shape) !== elementCount(x!.shape) || shape.some((size) => !Number.isInteger(size) || size < 0)) {
      throw new ShapeError(
        "reshape",
        `${formatShape(x!.shape)} has ${elementCount(x!.shape)} elements, ${formatShape(shape)} has ${elementCount(shape)}; both must hold equally many`,
      );
    }
    return [{ dtype: x!.dtype, shape: [...shape] }];
  },
  vjp: ({ inputs: [x], cotangents: [g] }) => [reshape(g!, x!.shape)],
  cost: moveCost,
  reference: ([x]) => [x!.data.slice()],
});
