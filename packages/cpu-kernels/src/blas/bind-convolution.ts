import type { ConvolutionSizes } from "../contraction-scratch.ts";
import type { KernelCall } from "../kernel.ts";
import type { Team } from "../team/team.ts";
import { multiplyAddNanoseconds } from "../blas.ts";
import type { RowSlices } from "./row-slices.ts";

/** Binds a convolution or gradient whose sums have at least one term, and returns its kernel call. */
export type BindConvolution = (s: ConvolutionSizes, team: Team, slices: RowSlices) => KernelCall;

/**
 * Returns a kernel call that computes a matrix product with a BLAS. Rows of the first operand start `aRow` elements
 * apart, rows of the result `columns` elements apart. Threads share the rows.
 */
export const bindRows = (
  team: Team,
  slices: RowSlices,
  {
    rows,
    columns,
    inner,
    flags,
    aRow,
    aStride,
    bStride,
  }: {
    rows: number;
    columns: number;
    inner: number;
    flags: readonly [number, number];
    aRow: number;
    aStride: number;
    bStride: number;
  },
): KernelCall => {
  const sgemm = team.indexOf("sgemm");
  const parts = team.partsOf(rows * columns * inner * multiplyAddNanoseconds, slices.most(rows));
  return ([a, b], [y]) =>
    team.run(parts, (part, call) => {
      const [begin, end] = [slices.begin(rows, part, parts), slices.begin(rows, part + 1, parts)];
      const [from, to] = [a! + 4 * begin * aRow, y! + 4 * begin * columns];
      if (end > begin)
        call(sgemm, ...flags, end - begin, columns, inner, 1, from, aStride, b!, bStride, 0, to, columns, 1, 0, 0, 0);
    });
};
