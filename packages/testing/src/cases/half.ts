import { type HalfDType, matmul, NdArray } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { defaultTolerance, storageTolerance } from "../closeness.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray } from "../seeded.ts";

const toHalf = (array: NdArray, dtype: HalfDType): NdArray => NdArray.from(array.toNumbers(), array.shape, dtype);

/**
 * Returns the conformance cases of products, with their operands converted to a 16-bit dtype. Sums are accumulated in
 * f32 and rounded once. The tolerance of a case is increased by the maximum rounding difference: twice the unit
 * roundoff, which is 2⁻¹¹ for f16 and 2⁻⁸ for bf16. Gradients are not checked, because their rules are the same as in
 * f32, and central differences of 16-bit values are too coarse.
 */
export const halfRows = (rows: readonly ConformanceCase[], dtype: HalfDType): ConformanceCase[] =>
  rows.flatMap(({ gradient: _, ...row }) => {
    const positions = operators[row.op]!.halfOperands;
    if (positions === undefined) return [];
    const wide = row.tolerance ?? defaultTolerance.f32;
    return [
      {
        ...row,
        name: `${row.name}, ${dtype}`,
        inputs: row.inputs.map((input, i) => (positions.includes(i) ? toHalf(input, dtype) : input)),
        tolerance: {
          absolute: wide.absolute + storageTolerance[dtype].absolute,
          relative: wide.relative + storageTolerance[dtype].relative,
        },
      },
    ];
  });

/**
 * Conformance cases of products with 16-bit operands and f32 results. The sums would overflow f16 or lose most of their
 * digits in 16 bits. In the last case, operands are bf16, and sums are beyond the range of f16.
 */
export const wideResultRows: readonly ConformanceCase[] = [
  {
    op: "matmul",
    name: "f16 to f32, beyond the range of f16",
    fn: (a, b) => matmul(a!, b!, { transposeA: true, resultDtype: "f32" }),
    inputs: [NdArray.from(new Float32Array(40 * 6).fill(200), [40, 6], "f16"), normalArray([40, 10], 3, "f16")],
    tolerance: { absolute: 1e-2, relative: 1e-5 },
  },
  {
    op: "matmul",
    name: "f16 to f32, batch",
    fn: (a, b) => matmul(a!, b!, { resultDtype: "f32" }),
    inputs: [normalArray([3, 17, 70], 1, "f16"), normalArray([3, 70, 9], 2, "f16")],
    tolerance: { absolute: 2e-5, relative: 1e-5 },
  },
  {
    op: "matmul",
    name: "bf16 to f32, batch",
    fn: (a, b) => matmul(a!, b!, { resultDtype: "f32" }),
    inputs: [normalArray([3, 17, 70], 1, "bf16"), normalArray([3, 70, 9], 2, "bf16")],
    tolerance: { absolute: 2e-5, relative: 1e-5 },
  },
  {
    op: "matmul",
    name: "bf16, beyond the range of f16",
    fn: (a, b) => matmul(a!, b!, { transposeA: true }),
    // powers of two have exact sums
    inputs: [
      NdArray.from(new Float32Array(40 * 6).fill(2 ** 60), [40, 6], "bf16"),
      NdArray.from(new Float32Array(40 * 10).fill(-(2 ** 20)), [40, 10], "bf16"),
    ],
  },
];
