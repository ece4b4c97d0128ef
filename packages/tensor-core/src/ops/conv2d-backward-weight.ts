import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount, type Shape } from "../shape.ts";
import { convolutionCost, type ConvolutionParams, forEachProduct, imagesDtype } from "./shared/convolution.ts";
import { asOperand } from "./shared/product-dtype.ts";

export type Conv2dBackwardWeightParams = ConvolutionParams & { readonly shape: Shape };

/**
 * Gradient of `conv2d` with respect to the weight: the operands are the image and the cotangent [N, H', W', O]; the
 * output has `shape`, the shape of the weight.
 */
export const conv2dBackwardWeightOperator: Operator = defineOperator<Conv2dBackwardWeightParams>({
  name: "conv2d-backward-weight",
  halfOperands: [0, 1],
  choosesResult: true,
  infer: (inputs, params) => [{ dtype: imagesDtype("conv2d-backward-weight", inputs, params), shape: params.shape }],
  vjp: ({ inputs: [x, g], cotangents: [cotangent], params: { shape: _, resultDtype: __, ...params } }) => {
    const c = asOperand(cotangent!, x!);
    return [
      emitOne("conv2d-backward-input", [g!, c], { ...params, shape: [...x!.shape] }),
      emitOne("conv2d", [x!, c], params),
    ];
  },
  cost: (inputs, outputs, { shape }) => convolutionCost(shape, inputs[1]!.shape, inputs, outputs),
  reference: ([x, g], params, [w]) => {
    const result = new Float64Array(elementCount(w!.shape));
    forEachProduct(x!.spec.shape, w!.shape, g!.spec.shape, params, (atX, atW, atY) => {
      result[atW]! += x!.data[atX]! * g!.data[atY]!;
    });
    return [result];
  },
});
