import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { firstMaximum, forEachWindow, poolingCost, type PoolingParams } from "./shared/pooling.ts";

/**
 * Gradient of `max-pool2d`: the operands are the image and the cotangent. Each entry of the cotangent is added at the
 * first maximum of its window.
 */
export const maxPool2dBackwardOperator: Operator = defineOperator<PoolingParams>({
  name: "max-pool2d-backward",
  infer: ([x]) => [{ dtype: "f32", shape: x!.shape }],
  cost: (inputs, outputs, { window }) => poolingCost(inputs[1]!.shape, window, inputs, outputs),
  reference: ([x, g], params) => {
    const result = new Float64Array(elementCount(x!.spec.shape));
    forEachWindow(x!.spec.shape, g!.spec.shape, params, (at, pixels) => {
      result[firstMaximum(x!.data, pixels)]! += g!.data[at]!;
    });
    return [result];
  },
});
