import { ordered } from "../../dtype.ts";
import { ShapeError } from "../../errors.ts";
import { defineOperator, type Operator } from "../../graph/operator.ts";
import { byteLength, elementCount, formatShape } from "../../shape.ts";
import { linesAlong } from "./along-dim.ts";

export type ArgReductionParams = { readonly dim: number };

/**
 * Creates an operator that returns the index of the best element along `dim`. `beats` returns whether `a` is better
 * than `b`. The first NaN is better than all other elements.
 */
export const argReduction = (name: string, beats: (a: number, b: number) => boolean): Operator =>
  defineOperator<ArgReductionParams>({
    name,
    infer: ([x], { dim }) => {
      if (!ordered.includes(x!.dtype))
        throw new ShapeError(
          name,
          `dtype ${x!.dtype} is not supported, expected ${ordered.join(", ")}; cast the operand first`,
        );
      if (x!.shape[dim] === 0)
        throw new ShapeError(
          name,
          `dimension ${dim} of ${formatShape(x!.shape)} is empty, so it has no such index; reduce a dimension with at least one element`,
        );
      return [{ dtype: "i32", shape: x!.shape.filter((_, other) => other !== dim) }];
    },
    cost: ([x], [output]) => ({
      flops: elementCount(x!.shape),
      bytesRead: byteLength(x!),
      bytesWritten: byteLength(output!),
    }),
    reference: ([x], { dim }) => [
      Float64Array.from(linesAlong(x!.spec.shape, dim), ({ start, stride, size }) => {
        let best = 0;
        for (let i = 1; i < size; i++) {
          const held = x!.data[start + best * stride]!;
          const value = x!.data[start + i * stride]!;
          if (!Number.isNaN(held) && (Number.isNaN(value) || beats(value, held))) best = i;
        }
        return best;
      }),
    ],
  });
