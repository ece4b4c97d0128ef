import { type Backend, evaluate, type NdArray, type Tensor } from "@skein/tensor-core";
import { rowSlice } from "./row-slice.ts";

/** A function with independent rows, and its inputs. */
export interface RowCase {
  /**
   * Operator or function, and the property that distinguishes this case, such as `matmul: transposed first operand`.
   */
  readonly name: string;
  /** Total number of independent rows of the inputs. */
  readonly rows: number;
  /** Returns the inputs for rows `begin` … `end` − 1. */
  readonly inputs: (begin: number, end: number) => readonly NdArray[];
  readonly fn: (...inputs: Tensor[]) => Tensor;
  /** Dimension of the output that indexes the rows. */
  readonly dim: number;
}

/** Returns the ranges of rows to compute separately: the first row, the last row, a few rows, and a tile of 64 rows. */
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
 * Checks that rows computed separately are bitwise equal to the same rows of the complete result. NaN equals NaN.
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
