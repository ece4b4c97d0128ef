import type { DType } from "../dtype.ts";
import { InvariantError, ShapeError } from "../errors.ts";
import { broadcastTo, reshape } from "../functions/movement.ts";
import { defineOperator, type Operator, type VjpContext } from "../graph/operator.ts";
import type { Tensor } from "../graph/tensor.ts";
import { byteLength, elementCount, formatSpec, rowMajorStrides, type Shape } from "../shape.ts";

/** `dims`: the dimensions that vanish, ascending, at least one. */
export type ReductionParams = { readonly dims: readonly number[] };

export interface ReductionRule {
  readonly name: string;
  readonly dtypes: readonly DType[];
  /** The result where nothing is reduced. */
  readonly empty: (dtype: DType) => number;
  readonly combine: (a: number, b: number) => number;
  readonly vjp: (context: VjpContext<ReductionParams>) => (Tensor | undefined)[];
}

/** Where each element of `shape` lands when `dims` vanish: flat positions in the result. */
const targets = (shape: Shape, dims: readonly number[]): Int32Array => {
  const kept = rowMajorStrides(shape.filter((_, dim) => !dims.includes(dim)));
  let next = 0;
  const steps = shape.map((_, dim) => (dims.includes(dim) ? 0 : kept[next++]!));
  const strides = rowMajorStrides(shape);
  return Int32Array.from({ length: elementCount(shape) }, (_, flat) =>
    shape.reduce((position, size, dim) => position + (Math.floor(flat / strides[dim]!) % size) * steps[dim]!, 0),
  );
};

/** Stretch a reduced tensor over the shape it came from. */
export const stretchBack = (reduced: Tensor, shape: Shape, dims: readonly number[]): Tensor =>
  broadcastTo(
    reshape(
      reduced,
      shape.map((size, dim) => (dims.includes(dim) ? 1 : size)),
    ),
    shape,
  );

/** An operator that folds the elements along `dims` into one. Cost: one flop per element read. */
export const reduction = (rule: ReductionRule): Operator =>
  defineOperator<ReductionParams>({
    name: rule.name,
    infer: ([x], { dims }) => {
      if (!rule.dtypes.includes(x!.dtype))
        throw new ShapeError(rule.name, `dtype ${x!.dtype} is not supported, it takes ${rule.dtypes.join(", ")}; cast the operand first`);
      if (dims.length === 0 || dims.some((dim, i) => dim < 0 || dim >= x!.shape.length || (i > 0 && dim <= dims[i - 1]!))) {
        throw new InvariantError(`${rule.name} takes ascending dimensions of its operand, got [${dims.join(", ")}] for ${formatSpec(x!)}`);
      }
      return [{ dtype: x!.dtype, shape: x!.shape.filter((_, dim) => !dims.includes(dim)) }];
    },
    vjp: rule.vjp,
    cost: ([x], [output]) => ({ flops: elementCount(x!.shape), bytesRead: byteLength(x!), bytesWritten: byteLength(output!) }),
    reference: ([x], { dims }, [output]) => {
      const result = new Float64Array(elementCount(output!.shape)).fill(rule.empty(x!.spec.dtype));
      targets(x!.spec.shape, dims).forEach((target, i) => (result[target] = rule.combine(result[target]!, x!.data[i]!)));
      return [result];
    },
  });
