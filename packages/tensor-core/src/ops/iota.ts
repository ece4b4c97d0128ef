import { type DType, arithmetic } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";

export type IotaParams = { readonly dtype: DType; readonly shape: readonly number[]; readonly dim: number };

/** Indices 0, 1, 2, … along `dim`, repeated along all other dimensions. */
export const iotaOperator: Operator = defineOperator<IotaParams>({
  name: "iota",
  infer: (_, { dtype, shape }) => {
    if (!arithmetic.includes(dtype))
      throw new ShapeError("iota", `dtype ${dtype} is not supported, use ${arithmetic.join(", ")}; cast the result`);
    return [{ dtype, shape }];
  },
  vjp: () => [],
  cost: (_, [output]) => ({ flops: 0, bytesRead: 0, bytesWritten: byteLength(output!) }),
  reference: (_, { shape, dim }) => {
    const inner = elementCount(shape.slice(dim + 1));
    return [Float64Array.from({ length: elementCount(shape) }, (_, i) => Math.floor(i / inner) % shape[dim]!)];
  },
});
