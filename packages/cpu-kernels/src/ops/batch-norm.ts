import { columnBegin, maxColumnParts } from "../column-parts.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { rowsOf } from "../row-kernel.ts";
import { partBegin } from "../team/team.ts";

/** Estimated nanoseconds per element in one thread, for each of the two passes (statistics, then normalization). */
const elementNanoseconds = 0.3;

/**
 * Computes the statistics of the columns, then normalizes the rows; see `assembly/batch-norm.ts`. Scratch: one f32
 * scale per column, and two words per column for rounding errors.
 */
export const batchNormKernel: Kernel = kernelOf({
  op: "batch-norm",
  scratchBytes: ({ inputs: [x] }) => 12 * x!.shape.at(-1)!,
  bind: ({ inputs: [spec], params: { epsilon } }, _, __, team) => {
    const statistics = team.indexOf("columnStatistics");
    const normalize = team.indexOf("normalizeColumns");
    const { rows, width } = rowsOf(spec!);
    const work = rows * width * elementNanoseconds;
    const columnParts = team.partsOf(work, maxColumnParts(width));
    const rowParts = team.partsOf(work, rows);
    return ([x, gamma, beta], [y, means, variances], scales) => {
      const rests = scales + 4 * width;
      team.run(columnParts, (part, call) => {
        const [first, last] = [columnBegin(width, part, columnParts), columnBegin(width, part + 1, columnParts)];
        call(statistics, means!, variances!, scales, x!, gamma!, rows, width, epsilon, rests, first, last);
      });
      team.run(rowParts, (part, call) => {
        const [first, last] = [partBegin(rows, part, rowParts), partBegin(rows, part + 1, rowParts)];
        const offset = 4 * first * width;
        call(normalize, y! + offset, x! + offset, means!, scales, beta!, last - first, width);
      });
    };
  },
});
