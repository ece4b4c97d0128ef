import { columnBegin, maxColumnParts } from "../column-parts.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { rowsOf } from "../row-kernel.ts";
import { partBegin } from "../team/team.ts";

/** Estimated nanoseconds per element in one thread, for each of the two passes (sums, then gradients). */
const elementNanoseconds = 0.3;

/**
 * Computes sums over columns, then the gradients of the rows from these sums; see `assembly/batch-norm.ts`. Scratch:
 * three floats per column.
 */
export const batchNormBackwardKernel: Kernel = kernelOf({
  op: "batch-norm-backward",
  scratchBytes: ({ inputs: [x] }) => 12 * x!.shape.at(-1)!,
  bind: ({ inputs: [spec], params: { epsilon } }, _, __, team) => {
    const sums = team.indexOf("columnFactors");
    const gradients = team.indexOf("columnGradients");
    const { rows, width } = rowsOf(spec!);
    const work = rows * width * elementNanoseconds;
    const columnParts = team.partsOf(work, maxColumnParts(width));
    const rowParts = team.partsOf(work, rows);
    return ([x, gamma, means, variances, g], [dx, dGamma, dBeta], factors) => {
      team.run(columnParts, (part, call) => {
        const [first, last] = [columnBegin(width, part, columnParts), columnBegin(width, part + 1, columnParts)];
        call(sums, dGamma!, dBeta!, factors, x!, gamma!, means!, variances!, g!, rows, width, epsilon, first, last);
      });
      team.run(rowParts, (part, call) => {
        const [first, last] = [partBegin(rows, part, rowParts), partBegin(rows, part + 1, rowParts)];
        const offset = 4 * first * width;
        call(gradients, dx! + offset, x! + offset, g! + offset, means!, factors, last - first, width);
      });
    };
  },
});
