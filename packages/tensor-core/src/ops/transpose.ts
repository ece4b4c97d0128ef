import { ShapeError } from "../errors.ts";
import { transpose } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { formatShape, rowMajorStrides, sameShape } from "../shape.ts";
import { moveCost, readStrided } from "./shared/strided.ts";
import { listOf, ofConstant } from "./shared/movement-rules.ts";

/**
 * Replaces a permutation that keeps the order of all dimensions larger than 1, such as [1, n] → [n, 1], by a reshape,
 * because a reshape moves no data.
 */
const transposeAsReshape: RewriteRule = ({ inputs, params, specs }, { spec, emit }) => {
  const { shape } = spec(inputs[0]!);
  const order = listOf(params["permutation"]).filter((dim) => shape[dim] !== 1);
  if (order.some((dim, i) => i > 0 && dim < order[i - 1]!)) return undefined;
  return sameShape(shape, specs[0]!.shape) ? inputs[0]! : emit("reshape", inputs, { shape: specs[0]!.shape });
};

const transposeOfTranspose: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  if (inner.op !== "transpose") return undefined;
  const first = listOf(inner.params["permutation"]);
  return derive(node, inner.inputs, { permutation: listOf(node.params["permutation"]).map((dim) => first[dim]!) });
};

export type TransposeParams = { readonly permutation: readonly number[] };

/** Reorders dimensions: dimension `d` of the result is dimension `permutation[d]` of `x`. */
export const transposeOperator: Operator = defineOperator<TransposeParams>({
  name: "transpose",
  rearranges: true,
  leadingDimsKept: ({ permutation }) => {
    const first = permutation.findIndex((dim, at) => dim !== at);
    return first < 0 ? permutation.length : first;
  },
  rewrites: [ofConstant, transposeAsReshape, transposeOfTranspose],
  infer: ([x], { permutation }) => {
    const rank = x!.shape.length;
    if (permutation.length !== rank || x!.shape.some((_, dim) => !permutation.includes(dim))) {
      throw new ShapeError(
        "transpose",
        `[${permutation.join(", ")}] is not a permutation of the ${rank} dimensions of ${formatShape(x!.shape)}; name each dimension once`,
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
