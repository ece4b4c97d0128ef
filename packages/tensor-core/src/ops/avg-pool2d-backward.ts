import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount, type Shape } from "../shape.ts";
import { forEachWindow, poolingCost, type PoolingParams } from "./shared/pooling.ts";

export type AvgPool2dBackwardParams = PoolingParams & { readonly countPadding: boolean; readonly shape: Shape };

/**
 * Gradient of `avg-pool2d`: the operand is the cotangent; the output has `shape`, the shape of the image. Each entry of
 * the cotangent is distributed equally over its window.
 */
export const avgPool2dBackwardOperator: Operator = defineOperator<AvgPool2dBackwardParams>({
  name: "avg-pool2d-backward",
  infer: (_, { shape }) => [{ dtype: "f32", shape }],
  vjp: ({ cotangents: [c], params: { shape: _, ...params } }) => [emitOne("avg-pool2d", [c!], params)],
  cost: (inputs, outputs, { window }) => poolingCost(inputs[0]!.shape, window, inputs, outputs),
  reference: ([g], params, [x]) => {
    const result = new Float64Array(elementCount(x!.shape));
    forEachWindow(x!.shape, g!.spec.shape, params, (at, pixels) => {
      const divisor = params.countPadding ? params.window[0] * params.window[1] : pixels.length;
      for (const pixel of pixels) result[pixel]! += g!.data[at]! / divisor;
    });
    return [result];
  },
});
