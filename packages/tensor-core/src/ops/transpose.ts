import { ShapeError } from "../errors.ts";
import { transpose } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { formatShape, rowMajorStrides } from "../shape.ts";
import { moveCost, readStrided } from "./strided.ts";

/** Reorder dimensions: dimension `d` of the result is dimension `permutation[d]` of `x`. */
export const transposeOperator: Operator = defineOperator<{ permutation: readonly number[] }>({
  name: "transpose",
  infer: ([x], { permutation }) => {
    const rank = x!.shape.length;
    if (permutation.length !== rank || x!.shape.some((_, dim) => !permutation.includes(dim))) {
      throw new ShapeError(
        "transpose",
        `[${permutation.join(", ")}] is no permutation of the ${rank} dimensions of ${formatShape(x!.shape)}; name each dimension once`,
      );
    }
    return [{ dtype: x!.dtype, shape: permutation.map((dim) => x!.shape[dim]!) }];
  },
  vjp: ({ cotangents: [g], params: { permutation } }) => [
    transpose(
      g!,
      permutation.map((_, dim) => permutation.indexOf(dim)),
    ),
  ],
  cost: moveCost,
  reference: ([x], { permutation }, [out]) => {
    const strides = rowMajorStrides(x!.spec.shape);
    return [
      readStrided(
        x!.data,
        out!.shape,
        permutation.map((dim) => strides[dim]!),
      ),
    ];
  },
});
