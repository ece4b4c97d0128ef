import { arithmetic } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { cumsum } from "../functions/reduce.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";
import { linesAlong } from "./shared/along-dim.ts";

export type CumsumParams = { readonly dim: number; readonly reverse: boolean };

/**
 * Inclusive cumulative sum along `dim`; with `reverse`, from the last entry to the first. The gradient is the
 * cumulative sum in the opposite direction.
 */
export const cumsumOperator: Operator = defineOperator<CumsumParams>({
  name: "cumsum",
  infer: ([x]) => {
    if (!arithmetic.includes(x!.dtype))
      throw new ShapeError(
        "cumsum",
        `dtype ${x!.dtype} is not supported, expected ${arithmetic.join(", ")}; cast the operand first`,
      );
    return [x!];
  },
  vjp: ({ cotangents: [g], params: { dim, reverse } }) => [cumsum(g!, { dim, reverse: !reverse })],
  cost: ([x]) => ({ flops: elementCount(x!.shape), bytesRead: byteLength(x!), bytesWritten: byteLength(x!) }),
  reference: ([x], { dim, reverse }) => {
    const result = new Float64Array(x!.data.length);
    for (const { start, stride, size } of linesAlong(x!.spec.shape, dim)) {
      let total = 0;
      for (let i = 0; i < size; i++) {
        const index = start + (reverse ? size - 1 - i : i) * stride;
        total += x!.data[index]!;
        result[index] = total;
      }
    }
    return [result];
  },
});
