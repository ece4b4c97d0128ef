import { type DType, dtypes, integerRange, isFloat } from "../dtype.ts";
import { cast } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import { elementwise } from "./elementwise.ts";

const fromFloat = (x: number, dtype: DType): number => {
  const range = integerRange[dtype];
  if (range === undefined) return x;
  return Number.isNaN(x) ? 0 : Math.min(Math.max(Math.trunc(x), range[0]), range[1]);
};

/**
 * The value in another dtype. Towards integers, floats lose their fraction and stop at the ends of the range (NaN becomes 0), integers
 * wrap; towards bool, anything but 0 is true; towards f16 and bf16, the nearest value, ties to even.
 */
export const castOperator: Operator = elementwise<{ dtype: DType }>({
  name: "cast",
  arity: 1,
  dtypes: dtypes,
  result: (_, { dtype }) => dtype,
  scalar: ([x], { dtype }, from) => (isFloat(from) ? fromFloat(x!, dtype) : x!),
  vjp: ({ inputs: [x], cotangents: [g], params: { dtype } }) => [isFloat(dtype) && isFloat(x!.dtype) ? cast(g!, x!.dtype) : undefined],
});
