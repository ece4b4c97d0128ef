import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { forEachWindow, poolingCost, type PoolingParams, poolingShape } from "./shared/pooling.ts";

export type AvgPool2dParams = PoolingParams & { readonly countPadding: boolean };

/**
 * Mean of each window, per channel. With `countPadding`, the divisor is the window size, also at the edges; otherwise,
 * the divisor is the number of window pixels inside the image.
 */
export const avgPool2dOperator: Operator = defineOperator<AvgPool2dParams>({
  name: "avg-pool2d",
  infer: ([x], params) => [{ dtype: "f32", shape: poolingShape(x!, params, "avg-pool2d") }],
  vjp: ({ inputs: [x], cotangents: [g], params }) => [
    emitOne("avg-pool2d-backward", [g!], { ...params, shape: [...x!.shape] }),
  ],
  cost: (inputs, outputs, { window }) => poolingCost(outputs[0]!.shape, window, inputs, outputs),
  reference: ([x], params, [y]) => {
    const result = new Float64Array(elementCount(y!.shape));
    forEachWindow(x!.spec.shape, y!.shape, params, (at, pixels) => {
      const divisor = params.countPadding ? params.window[0] * params.window[1] : pixels.length;
      result[at] = pixels.reduce((sum, pixel) => sum + x!.data[pixel]!, 0) / divisor;
    });
    return [result];
  },
});
