import { maximum, minimum, NdArray, onesLike, power, relu, type Tensor, vjp } from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";

/** Returns the gradients of a function for all inputs, with a cotangent of ones. */
const gradients = (fn: (...xs: Tensor[]) => Tensor, ...inputs: Tensor[]): readonly Tensor[] => {
  const { value, pullback } = vjp((xs: readonly Tensor[]) => fn(...xs), inputs);
  return pullback(onesLike(value));
};

const exact = { absolute: 0, relative: 0 };

/**
 * Conformance cases of gradients at points without a derivative, and at points where a gradient rule multiplies 0 by a
 * possibly infinite value.
 */
export const hardGradientCases: readonly ConformanceCase[] = [
  {
    op: "power",
    name: "gradient towards bases where exponents are 0",
    fn: (a, b) => gradients(power as (...xs: Tensor[]) => Tensor, a!, b!)[0]!,
    inputs: [NdArray.from([-1, 0, 1, 0, NaN, 1.5, 0, Infinity]), NdArray.from([0, 0, 0, 2, 0, 3, 1, 0])],
  },
  {
    op: "power",
    name: "gradient where the exponent is a constant 0",
    fn: (a) => gradients((x) => power(x!, 0), a!)[0]!,
    inputs: [NdArray.from([-1, 0, 1, NaN])],
    tolerance: exact,
  },
  ...([maximum, minimum] as const).map(
    (fn): ConformanceCase => ({
      op: fn.name,
      name: "gradients at ties and beside NaN",
      fn: (a, b) => gradients(fn as (...xs: Tensor[]) => Tensor, a!, b!),
      inputs: [NdArray.from([1, NaN, 2, NaN, -1, 3]), NdArray.from([NaN, 1, 2, NaN, -2, 4])],
      tolerance: exact,
    }),
  ),
  {
    op: "relu",
    name: "gradient at 0 and NaN",
    fn: (x) => gradients(relu as (...xs: Tensor[]) => Tensor, x!)[0]!,
    inputs: [NdArray.from([-1, 0, NaN, 2, -Infinity, Infinity])],
    tolerance: exact,
  },
];
