import type { DType } from "../../dtype.ts";
import { InvariantError, ShapeError } from "../../errors.ts";
import { broadcastTo, reshape } from "../../functions/movement.ts";
import { defineOperator, type Fold, type Operator, type OperatorFacts, type VjpContext } from "../../graph/operator.ts";
import type { RewriteRule } from "../../graph/rewrite-rule.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { byteLength, elementCount, formatSpec, rowMajorStrides, type Shape } from "../../shape.ts";

/** Parameters of a reduction. `dims`: reduced dimensions, ascending, at least one. */
export type ReductionParams = { readonly dims: readonly number[] };

export interface ReductionRule extends OperatorFacts<ReductionParams> {
  readonly name: string;
  readonly dtypes: readonly DType[];
  /** Returns the result of a reduction over zero elements. */
  readonly empty: (dtype: DType) => number;
  readonly combine: (a: number, b: number) => number;
  readonly vjp: (context: VjpContext<ReductionParams>) => (Tensor | undefined)[];
}

/** Computes the flat index of each element of `shape` in the result after reducing `dims`. */
const targets = (shape: Shape, dims: readonly number[]): Int32Array => {
  const keptStrides = rowMajorStrides(shape.filter((_, dim) => !dims.includes(dim)));
  let next = 0;
  const steps = shape.map((_, dim) => (dims.includes(dim) ? 0 : keptStrides[next++]!));
  const strides = rowMajorStrides(shape);
  return Int32Array.from({ length: elementCount(shape) }, (_, flat) =>
    shape.reduce((position, size, dim) => position + (Math.floor(flat / strides[dim]!) % size) * steps[dim]!, 0),
  );
};

/** Broadcasts a reduced tensor to `shape`, the shape before the reduction. */
export const broadcastBack = (reduced: Tensor, shape: Shape, dims: readonly number[]): Tensor =>
  broadcastTo(
    reshape(
      reduced,
      shape.map((size, dim) => (dims.includes(dim) ? 1 : size)),
    ),
    shape,
  );

/** Replaces a reduction of dimensions of size 1 by a reshape. */
const reduceOfOnes: RewriteRule<ReductionParams> = ({ inputs, specs }, { spec, emit }) => {
  const count = elementCount(specs[0]!.shape);
  return count > 0 && elementCount(spec(inputs[0]!).shape) === count
    ? emit("reshape", inputs, { shape: specs[0]!.shape })
    : undefined;
};

/**
 * Fold for f32 reductions over the trailing dimensions. Such a reduction can be fused into the kernel that computes its
 * operand.
 */
export const trailingFold: Fold<ReductionParams> = {
  dtype: "f32",
  from: ({ dims }, numDims) => (dims.length === numDims - dims[0]! ? dims[0] : undefined),
};

/** Creates an operator that reduces the elements along `dims` to one element. Cost: one flop per element. */
export const reduction = ({ dtypes, empty, combine, rewrites = [], ...rule }: ReductionRule): Operator =>
  defineOperator<ReductionParams>({
    ...rule,
    rewrites: [...rewrites, reduceOfOnes],
    infer: ([x], { dims }) => {
      if (!dtypes.includes(x!.dtype))
        throw new ShapeError(
          rule.name,
          `dtype ${x!.dtype} is not supported, expected ${dtypes.join(", ")}; cast the operand first`,
        );
      if (
        dims.length === 0 ||
        dims.some((dim, i) => dim < 0 || dim >= x!.shape.length || (i > 0 && dim <= dims[i - 1]!))
      ) {
        throw new InvariantError(
          `${rule.name} takes ascending dimensions of its operand, got [${dims.join(", ")}] for ${formatSpec(x!)}`,
        );
      }
      return [{ dtype: x!.dtype, shape: x!.shape.filter((_, dim) => !dims.includes(dim)) }];
    },
    cost: ([x], [output]) => ({
      flops: elementCount(x!.shape),
      bytesRead: byteLength(x!),
      bytesWritten: byteLength(output!),
    }),
    reference: ([x], { dims }, [output]) => {
      const result = new Float64Array(elementCount(output!.shape)).fill(empty(x!.spec.dtype));
      targets(x!.spec.shape, dims).forEach((target, i) => (result[target] = combine(result[target]!, x!.data[i]!)));
      return [result];
    },
  });
