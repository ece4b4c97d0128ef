import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import {
  convolutionCost,
  type ConvolutionParams,
  convolutionShape,
  forEachProduct,
  imagesDtype,
} from "./shared/convolution.ts";
import { asOperand } from "./shared/product-dtype.ts";

/**
 * Convolution of NHWC images with HWIO weights:
 * `y[n, i, j, o] = Σ x[n, i·s − p + r·d, j·s − p + c·d, q] · w[r, c, q, o]` with stride s, padding p and dilation d.
 */
export const conv2dOperator: Operator = defineOperator<ConvolutionParams>({
  name: "conv2d",
  halfOperands: [0, 1],
  choosesResult: true,
  layer: () => [{ kind: "convolution", input: 0, weight: 1 }],
  infer: ([x, w], params) => {
    const dtype = imagesDtype("conv2d", [x!, w!], params);
    return [{ dtype, shape: convolutionShape(x!.shape, w!.shape, params, "conv2d") }];
  },
  vjp: ({ inputs: [x, w], cotangents: [cotangent], params: { resultDtype: _, ...params } }) => {
    const g = asOperand(cotangent!, x!);
    return [
      emitOne("conv2d-backward-input", [g, w!], { ...params, shape: [...x!.shape] }),
      emitOne("conv2d-backward-weight", [x!, g], { ...params, shape: [...w!.shape] }),
    ];
  },
  cost: (inputs, outputs) => convolutionCost(inputs[1]!.shape, outputs[0]!.shape, inputs, outputs),
  reference: ([x, w], params, [y]) => {
    const result = new Float64Array(elementCount(y!.shape));
    forEachProduct(x!.spec.shape, w!.spec.shape, y!.shape, params, (atX, atW, atY) => {
      result[atY]! += x!.data[atX]! * w!.data[atW]!;
    });
    return [result];
  },
});
