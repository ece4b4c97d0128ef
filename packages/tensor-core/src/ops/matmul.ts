import { InvariantError, ShapeError } from "../errors.ts";
import { matmul } from "../functions/linear.ts";
import type { ValueRef } from "../graph/graph.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteContext, RewriteRule } from "../graph/rewrite-rule.ts";
import { byteLength, elementCount, formatShape, sameShape, type TensorSpec } from "../shape.ts";
import { asOperand, productDtype, type ProductParams } from "./shared/product-dtype.ts";
import { listOf } from "./shared/movement-rules.ts";

export type MatmulParams = ProductParams & { readonly transposeA: boolean; readonly transposeB: boolean };

/** Returns the dimensions of one matrix product, and the number of matrix products. */
const sizes = (a: TensorSpec, b: TensorSpec, { transposeA, transposeB }: MatmulParams) => {
  const [a0, a1] = a.shape.slice(-2) as [number, number];
  const [b0, b1] = b.shape.slice(-2) as [number, number];
  return {
    rows: transposeA ? a1 : a0,
    inner: transposeA ? a0 : a1,
    innerOfB: transposeB ? b1 : b0,
    columns: transposeB ? b0 : b1,
    batch: elementCount(a.shape.slice(0, -2)),
  };
};

const swapsLastTwo = (ref: ValueRef, { producer }: RewriteContext): ValueRef | undefined => {
  const { op, inputs, params } = producer(ref);
  if (op !== "transpose") return undefined;
  const order = listOf(params["permutation"]);
  const last = order.length - 1;
  return order.every((dim, i) => dim === (i === last ? last - 1 : i === last - 1 ? last : i)) ? inputs[0]! : undefined;
};

/** Replaces a transposed operand by a transpose flag, so that the transposed copy is not needed. */
const productOfTransposed: RewriteRule<MatmulParams> = (node, context) => {
  const {
    inputs: [a, b],
    params: { transposeA, transposeB },
  } = node;
  const plainA = swapsLastTwo(a!, context);
  const plainB = swapsLastTwo(b!, context);
  if (plainA === undefined && plainB === undefined) return undefined;
  return context.derive(node, [plainA ?? a!, plainB ?? b!], {
    transposeA: transposeA !== (plainA !== undefined),
    transposeB: transposeB !== (plainB !== undefined),
  });
};

/**
 * Matrix product `y[..., m, n] = Σₖ a[..., m, k] · b[..., k, n]` with equal leading dimensions. Either operand may be
 * stored transposed.
 */
export const matmulOperator: Operator = defineOperator<MatmulParams>({
  name: "matmul",
  rewrites: [productOfTransposed],
  halfOperands: [0, 1],
  choosesResult: true,
  layer: () => [
    { kind: "linear", input: 0, weight: 1 },
    { kind: "linear", input: 1, weight: 0 },
  ],
  infer: ([a, b], params) => {
    if (
      a!.shape.length < 2 ||
      b!.shape.length !== a!.shape.length ||
      !sameShape(a!.shape.slice(0, -2), b!.shape.slice(0, -2))
    ) {
      throw new InvariantError(
        `matmul node with operands ${formatShape(a!.shape)} and ${formatShape(b!.shape)}, whose leading dimensions must be equal`,
      );
    }
    const dtype = productDtype("matmul", [a!, b!], params);
    const { rows, inner, innerOfB, columns } = sizes(a!, b!, params);
    if (inner !== innerOfB) {
      const transposed = [params.transposeA && "the first", params.transposeB && "the second"]
        .filter(Boolean)
        .join(" and ");
      throw new ShapeError(
        "matmul",
        `${formatShape(a!.shape)} and ${formatShape(b!.shape)}${transposed === "" ? "" : ` (${transposed} transposed)`} do not fit: the inner dimensions must be equal, here ${inner} and ${innerOfB}; transpose or reshape one of them`,
      );
    }
    return [{ dtype, shape: [...a!.shape.slice(0, -2), rows, columns] }];
  },
  // Each gradient is a product with transpose flags, so no transposed copy is needed.
  vjp: ({ inputs: [a, b], cotangents: [cotangent], params: { transposeA, transposeB } }) => {
    const g = asOperand(cotangent!, a!);
    return [
      transposeA
        ? matmul(b!, g, { transposeA: transposeB, transposeB: true })
        : matmul(g, b!, { transposeB: !transposeB }),
      transposeB
        ? matmul(g, a!, { transposeA: true, transposeB: transposeA })
        : matmul(a!, g, { transposeA: !transposeA }),
    ];
  },
  cost: ([a, b], [y], params) => ({
    flops: 2 * elementCount(y!.shape) * sizes(a!, b!, params).inner,
    bytesRead: byteLength(a!) + byteLength(b!),
    bytesWritten: byteLength(y!),
  }),
  reference: ([a, b], params, [y]) => {
    const { rows, inner, columns, batch } = sizes(a!.spec, b!.spec, params);
    const [aRow, aInner] = params.transposeA ? [1, rows] : [inner, 1];
    const [bInner, bColumn] = params.transposeB ? [1, inner] : [columns, 1];
    const result = new Float64Array(elementCount(y!.shape));
    for (let i = 0; i < batch; i++) {
      for (let m = 0; m < rows; m++) {
        for (let n = 0; n < columns; n++) {
          let sum = 0;
          for (let k = 0; k < inner; k++) {
            sum +=
              a!.data[i * rows * inner + m * aRow + k * aInner]! *
              b!.data[i * inner * columns + k * bInner + n * bColumn]!;
          }
          result[(i * rows + m) * columns + n] = sum;
        }
      }
    }
    return [result];
  },
});
