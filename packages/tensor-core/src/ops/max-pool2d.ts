import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { firstMaximum, forEachWindow, poolingCost, type PoolingParams, poolingShape } from "./shared/pooling.ts";

/** Maximum of each window, per channel. */
export const maxPool2dOperator: Operator = defineOperator<PoolingParams>({
  name: "max-pool2d",
  infer: ([x], params) => [{ dtype: "f32", shape: poolingShape(x!, params, "max-pool2d") }],
  vjp: ({ inputs: [x], cotangents: [g], params }) => [emitOne("max-pool2d-backward", [x!, g!], params)],
  cost: (inputs, outputs, { window }) => poolingCost(outputs[0]!.shape, window, inputs, outputs),
  reference: ([x], params, [y]) => {
    const result = new Float64Array(elementCount(y!.shape));
    forEachWindow(x!.spec.shape, y!.shape, params, (at, pixels) => {
      result[at] = x!.data[firstMaximum(x!.data, pixels)]!;
    });
    return [result];
  },
});
