import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount, type Shape } from "../shape.ts";
import { convolutionCost, type ConvolutionParams, forEachProduct, imagesDtype } from "./shared/convolution.ts";
import { asOperand } from "./shared/product-dtype.ts";

export type Conv2dBackwardInputParams = ConvolutionParams & { readonly shape: Shape };

/**
 * Gradient of `conv2d` with respect to the image (a transposed convolution): the operands are the cotangent [N, H', W',
 * O] and the weight; the output has `shape`, the shape of the image.
 */
export const conv2dBackwardInputOperator: Operator = defineOperator<Conv2dBackwardInputParams>({
  name: "conv2d-backward-input",
  halfOperands: [0, 1],
  choosesResult: true,
  infer: (inputs, params) => [{ dtype: imagesDtype("conv2d-backward-input", inputs, params), shape: params.shape }],
  vjp: ({ inputs: [g, w], cotangents: [cotangent], params: { shape: _, resultDtype: __, ...params } }) => {
    const c = asOperand(cotangent!, g!);
    return [
      emitOne("conv2d", [c, w!], params),
      emitOne("conv2d-backward-weight", [c, g!], { ...params, shape: [...w!.shape] }),
    ];
  },
  cost: (inputs, outputs) => convolutionCost(inputs[1]!.shape, inputs[0]!.shape, inputs, outputs),
  reference: ([g, w], params, [x]) => {
    const result = new Float64Array(elementCount(x!.shape));
    forEachProduct(x!.shape, w!.spec.shape, g!.spec.shape, params, (atX, atW, atY) => {
      result[atX]! += g!.data[atY]! * w!.data[atW]!;
    });
    return [result];
  },
});
