import { toReference } from "./run-on-ranks.ts";
import {
  add,
  type Backend,
  type DType,
  elementCount,
  evaluate,
  flattenTree,
  full,
  isFloat,
  multiply,
  NdArray,
  sum,
  type Tensor,
  trace,
  type Traced,
  vjp,
} from "@skein/tensor-core";
import { interpretWorld, type ReferenceArray } from "@skein/tensor-core/backend";
import { assertClose, defaultTolerance, firstDifference, type Tolerance, unitRoundoff } from "./closeness.ts";
import type { ConformanceCase } from "./conformance-case.ts";
import { normalArray } from "./seeded.ts";

const outputsOf = (row: ConformanceCase, inputs: readonly Tensor[]): Tensor[] =>
  flattenTree<Tensor>(row.fn(...inputs)).leaves;

const caseLabel = (row: ConformanceCase): string => `${row.op} (${row.name})`;

/** Returns the tolerance of a conformance case for results of a storage dtype. */
export const toleranceOf = ({ tolerance }: ConformanceCase, dtype: DType): Tolerance =>
  (isFloat(dtype) ? tolerance : undefined) ?? defaultTolerance[dtype];

/**
 * Ratio of the gradient tolerance of a conformance case to its result tolerance. A gradient is computed from the
 * results by about three further operations.
 */
export const gradientFactor = 3;

/**
 * Minimum tolerance of gradients. Even for an exact function the gradient is a product with weights or a sum of
 * products.
 */
const minGradientTolerance: Tolerance = { absolute: 16 * unitRoundoff.f32, relative: 16 * unitRoundoff.f32 };

/** Returns the tolerance of a conformance case for its gradients. */
export const gradientToleranceOf = (row: ConformanceCase): Tolerance => {
  const { absolute, relative } = toleranceOf(row, "f32");
  return {
    absolute: Math.max(gradientFactor * absolute, minGradientTolerance.absolute),
    relative: Math.max(gradientFactor * relative, minGradientTolerance.relative),
  };
};

export interface CheckOptions {
  /**
   * Treatment of subnormal numbers (below 2⁻¹²⁶) on the backend's device. `flushed`: the device may replace subnormal
   * numbers by 0 whenever it reads or produces them, as WebGPU allows. The reference then reads inputs without
   * subnormal numbers, and results may differ by 2⁻¹²⁶. Default: `kept`.
   */
  readonly subnormals?: "kept" | "flushed";
}

const smallestNormal = 2 ** -126;

/** Returns the inputs of a conformance case, with numbers below the normal range of f32 replaced by 0. */
const flushInputs = ({ inputs }: ConformanceCase): NdArray[] =>
  inputs.map((input) =>
    isFloat(input.dtype)
      ? NdArray.from(
          input.toNumbers().map((value) => (Math.abs(value) < smallestNormal ? 0 : value)),
          input.shape,
          input.dtype,
        )
      : input,
  );

/** Runs a conformance case on a backend, and compares every output with the f64 reference. */
export const checkValues = async (
  row: ConformanceCase,
  backend: Backend,
  { subnormals = "kept" }: CheckOptions = {},
): Promise<void> => {
  const run = (...inputs: Tensor[]): Tensor[] => outputsOf(row, inputs);
  const inputs = subnormals === "kept" ? row.inputs : flushInputs(row);
  const expected = interpretWorld(trace(run, inputs as never).graph, [inputs.map(toReference)])[0]!;
  const actual = (await evaluate(run, backend)(...inputs)) as readonly NdArray[];
  if (actual.length !== expected.length)
    throw new Error(`${caseLabel(row)}: ${actual.length} outputs instead of ${expected.length}`);
  expected.forEach((output, i) => {
    const { dtype } = output.spec;
    const { absolute, relative } = toleranceOf(row, dtype);
    const tolerance = {
      absolute: isFloat(dtype) && subnormals === "flushed" ? Math.max(absolute, smallestNormal) : absolute,
      relative,
    };
    assertClose(actual[i]!, output, `${caseLabel(row)} output ${i}`, tolerance);
  });
};

/**
 * Returns the sum of all f32 outputs of a conformance case, multiplied by fixed random weights, so that errors do not
 * cancel.
 */
const weightedLoss = (row: ConformanceCase, inputs: readonly Tensor[], weights: readonly Tensor[]): Tensor => {
  const terms = outputsOf(row, inputs).flatMap((output, i) =>
    output.dtype === "f32" ? [sum(multiply(output, weights[i]!))] : [],
  );
  return terms.reduce((total, term) => add(total, term));
};

const gradientProgram = (
  row: ConformanceCase,
): {
  weights: readonly NdArray[];
  program: (...args: Tensor[]) => readonly Tensor[];
  loss: (...args: Tensor[]) => Tensor;
} => {
  const shapes: NdArray[] = [];
  trace((...inputs: Tensor[]) => {
    const outputs = outputsOf(row, inputs);
    outputs.forEach((output, i) => shapes.push(normalArray(output.shape, 977 + i)));
    return outputs;
  }, row.inputs as never);
  const count = row.inputs.length;
  const loss = (...args: Tensor[]): Tensor => weightedLoss(row, args.slice(0, count), args.slice(count));
  const program = (...args: Tensor[]): readonly Tensor[] => {
    const wrt = row.gradient!.map((position) => args[position]!);
    const { pullback } = vjp((own: readonly Tensor[]) => {
      const replaced = args.map((arg, position) => own[row.gradient!.indexOf(position)] ?? arg);
      return { loss: loss(...replaced) };
    }, wrt);
    return pullback({ loss: full([], 1) });
  };
  return { weights: shapes, program, loss };
};

const run = (traced: Traced, inputs: readonly ReferenceArray[]): ReferenceArray[] =>
  interpretWorld(traced.graph, [inputs])[0]!;

/**
 * Compares the traced gradient with central differences, both in f64 on the reference. For a step h, the error is h²
 * plus the rounding error 1e-16/h, so h = 1e-5 gives about ten correct digits.
 */
export const checkGradientRule = (row: ConformanceCase): void => {
  const { weights, program, loss } = gradientProgram(row);
  const args = [...row.inputs, ...weights];
  const tracedLoss = trace(loss, args as never);
  const analytic = run(trace(program, args as never), args.map(toReference));
  row.gradient!.forEach((position, i) => {
    const inputs = args.map(toReference);
    const data = inputs[position]!.data;
    const step = 1e-5;
    const numeric = data.map((value, element) => {
      data[element] = value + step;
      const above = run(tracedLoss, inputs)[0]!.data[0]!;
      data[element] = value - step;
      const below = run(tracedLoss, inputs)[0]!.data[0]!;
      data[element] = value;
      return (above - below) / (2 * step);
    });
    const difference = firstDifference(analytic[i]!.data, numeric, { absolute: 1e-6, relative: 1e-5 });
    if (difference !== undefined) throw new Error(`${caseLabel(row)}: gradient of input ${position}: ${difference}`);
  });
};

/** Compares the gradient computed on a backend with the gradient of the reference. */
export const checkGradientValues = async (row: ConformanceCase, backend: Backend): Promise<void> => {
  const { weights, program } = gradientProgram(row);
  const args = [...row.inputs, ...weights];
  const expected = run(trace(program, args as never), args.map(toReference));
  const actual = (await evaluate(program, backend)(...args)) as readonly NdArray[];
  expected.forEach((gradient, i) =>
    assertClose(
      actual[i]!,
      gradient,
      `${caseLabel(row)} gradient of input ${row.gradient![i]}`,
      gradientToleranceOf(row),
    ),
  );
};

/**
 * Returns the total number of elements in the inputs of a conformance case. Central differences take too long for cases
 * with many elements.
 */
export const inputElements = (row: ConformanceCase): number =>
  row.inputs.reduce((total, input) => total + elementCount(input.shape), 0);
