import { groupRanges, type KernelNode } from "@skein/tensor-core/backend";
import { alignUp } from "../arena.ts";
import { multiplyAddNanoseconds, productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { integersAt } from "../run-time-integers.ts";

/** Returns the scratch bytes of one part. */
const scratchOf = ({ inputs: [x, g] }: KernelNode): number =>
  alignUp(productScratchBytes(x!.shape[1]!, g!.shape[1]!, x!.shape[0]!));

/**
 * Computes one matrix product per group, whose sums run over the rows of the group. The result of a group without rows
 * is zero.
 */
export const groupedMatmulBackwardWeightKernel: Kernel = kernelOf({
  op: "grouped-matmul-backward-weight",
  scratchBytes: (node, threads) => threads * scratchOf(node),
  bind: (node, _, memory, team) => {
    const {
      inputs: [x, g],
      outputs: [dw],
    } = node;
    const gemm = team.indexOf("gemmPart");
    const bytesEach = scratchOf(node);
    const [rows, inner] = x!.shape as [number, number];
    const columns = g!.shape[1]!;
    const groups = dw!.shape[0]!;
    const integers = integersAt(memory);
    const parts = team.partsOf(rows * inner * columns * multiplyAddNanoseconds, Infinity);
    return ([from, gradients, counts], [to], scratch) => {
      const ranges = groupRanges(integers(counts!, groups), rows);
      team.run(parts, (part, call) =>
        ranges.forEach(({ begin, end }, group) => {
          const [a, b, c] = [
            from! + 4 * begin * inner,
            gradients! + 4 * begin * columns,
            to! + 4 * group * inner * columns,
          ];
          call(gemm, a, b, c, inner, columns, end - begin, 1, 0, 0, scratch + part * bytesEach, part, parts);
        }),
      );
    };
  },
});
