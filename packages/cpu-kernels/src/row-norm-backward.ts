import { NORM_BLOCK_ROWS } from "../assembly/blocks.ts";
import { type Kernel, kernelOf } from "./kernel.ts";
import { rowsOf } from "./row-kernel.ts";

/** Estimated nanoseconds per row element, in one thread. */
const elementNanoseconds = 0.8;

/**
 * Creates the kernel of the gradient of layer norm or RMS norm. Threads share blocks of rows. For each block, a thread
 * stores sums for gamma and beta, which are then added in the order of the blocks.
 *
 * @param totals Number of parameters with a gradient: 1 for gamma, 2 for gamma and beta.
 */
export const rowNormBackwardKernel = (
  op: "layer-norm-backward" | "rms-norm-backward",
  name: string,
  totals: 1 | 2,
): Kernel =>
  kernelOf<typeof op>({
    op,
    scratchBytes: ({ inputs: [x] }) => {
      const { rows, width } = rowsOf(x!);
      return 4 * width * (totals * Math.ceil(rows / NORM_BLOCK_ROWS) + 1);
    },
    bind: ({ inputs: [x] }, wasm, _, team) => {
      const backward = team.indexOf(name);
      const normTotals = wasm["normTotals"]!;
      const { rows, width } = rowsOf(x!);
      const parts = team.partsOf(rows * width * elementNanoseconds, Math.ceil(rows / NORM_BLOCK_ROWS));
      return (inputs, [dx, ...sums], scratch) => {
        team.run(parts, (part, call) => call(backward, dx!, scratch, ...inputs, rows, width, part, parts));
        for (let i = 0; i < totals; i++) normTotals(sums[i]!, scratch, rows, width, totals * width, i * width);
      };
    },
  });
