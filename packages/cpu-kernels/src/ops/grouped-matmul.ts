import { groupRanges, type KernelNode } from "@skein/tensor-core/backend";
import { alignUp } from "../arena.ts";
import { multiplyAddNanoseconds, productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { integersAt } from "../run-time-integers.ts";

/** Returns the scratch bytes of one part, for a product of all rows. Products of fewer rows need no more. */
const scratchOf = ({ inputs: [x], outputs: [y] }: KernelNode): number =>
  alignUp(productScratchBytes(x!.shape[0]!, y!.shape[1]!, x!.shape[1]!));

/** Computes one product per group, directly on the rows of the group; see `assembly/gemm.ts`. */
export const groupedMatmulKernel: Kernel = kernelOf({
  op: "grouped-matmul",
  scratchBytes: (node, threads) => threads * scratchOf(node),
  bind: (node, _, memory, team) => {
    const {
      inputs: [x, w],
      outputs: [y],
      params,
    } = node;
    const gemm = team.indexOf("gemmPart");
    const fill32 = team.indexOf("fill32");
    const bytesEach = scratchOf(node);
    const [rows, inner] = x!.shape as [number, number];
    const columns = y!.shape[1]!;
    const groups = w!.shape[0]!;
    const transposeW = Number(params.transposeW);
    const integers = integersAt(memory);
    const parts = team.partsOf(rows * inner * columns * multiplyAddNanoseconds, Infinity);
    return ([from, weights, counts], [to], scratch) => {
      const ranges = groupRanges(integers(counts!, groups), rows);
      const done = ranges.at(-1)?.end ?? 0;
      team.run(parts, (part, call) => {
        ranges.forEach(({ begin, end }, group) => {
          const [a, b, c] = [
            from! + 4 * begin * inner,
            weights! + 4 * group * inner * columns,
            to! + 4 * begin * columns,
          ];
          const count = end - begin;
          const own = scratch + part * bytesEach;
          if (count > 0) call(gemm, a, b, c, count, columns, inner, 0, transposeW, 0, own, part, parts);
        });
        if (part === 0) call(fill32, to! + 4 * done * columns, 0, (rows - done) * columns);
      });
    };
  },
});
