import { type Backend, evaluate, type NdArray, type Tensor } from "@skein/tensor-core";
import { rowSlice } from "./row-slice.ts";

/** A traced function with independent rows, with inputs for all of its rows. */
export interface RowCase {
  /** Operator or function, and the special property, such as `matmul: transposed first operand`. */
  readonly name: string;
  /** Number of rows of the whole. */
  readonly rows: number;
  /** Returns the inputs for rows `begin` … `end` − 1. */
  readonly inputs: (begin: number, end: number) => readonly NdArray[];
  readonly fn: (...inputs: Tensor[]) => Tensor;
  /** Dimension of the rows in the output. */
  readonly dim: number;
}

/** Ranges of rows that are computed separately: one row at either end, a few rows, a tile and its neighbors. */
export const rowRanges = (rows: number): readonly (readonly [begin: number, end: number])[] =>
  (
    [
      [0, 1],
      [rows - 1, rows],
      [1, 3],
      [2, 9],
      [3, 67],
    ] as const
  ).filter(([begin, end]) => begin >= 0 && end <= rows && end - begin < rows);

/**
 * Checks that rows computed separately are bitwise equal to the same rows of the whole. NaN equals NaN.
 *
 * @throws Error that names the case, the rows and the first different element.
 */
export const checkRows = async (
  { name, rows, inputs, fn, dim }: RowCase,
  backend: Backend,
  ranges: ReturnType<typeof rowRanges> = rowRanges(rows),
): Promise<void> => {
  const run = evaluate((...xs: Tensor[]) => fn(...xs), backend);
  const whole = (await run(...inputs(0, rows))) as NdArray;
  for (const [begin, end] of ranges) {
    const part = (await run(...inputs(begin, end))) as NdArray;
    const expected = rowSlice(whole, dim, begin, end);
    if (part.shape.join() !== expected.shape.join())
      throw new Error(`${name}: rows ${begin} to ${end} have the shape [${part.shape}], not [${expected.shape}]`);
    const [actual, wanted] = [part.toNumbers(), expected.toNumbers()];
    const at = actual.findIndex((value, i) => !Object.is(value, wanted[i]));
    if (at >= 0)
      throw new Error(
        `${name}: element ${at} of rows ${begin} to ${end} of ${rows} is ${actual[at]} if these rows are computed separately, but ${wanted[at]} if all rows are`,
      );
  }
};
