import { groupRanges } from "@skein/tensor-core/backend";
import { productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { integersAt } from "../run-time-integers.ts";

/** One product per group, of its rows where they lie; see `assembly/gemm.ts`. */
export const groupedMatmulKernel: Kernel = kernelOf({
  op: "grouped-matmul",
  // Fewer rows need no more.
  scratchBytes: ({ inputs: [x], outputs: [y] }) => productScratchBytes(x!.shape[0]!, y!.shape[1]!, x!.shape[1]!),
  bind: ({ inputs: [x, w], outputs: [y], params }, wasm, memory) => {
    const gemm = wasm["gemm"]!;
    const fill32 = wasm["fill32"]!;
    const [rows, inner] = x!.shape as [number, number];
    const columns = y!.shape[1]!;
    const groups = w!.shape[0]!;
    const transposeW = Number(params.transposeW);
    const integers = integersAt(memory);
    return ([from, weights, counts], [to], scratch) => {
      let done = 0;
      groupRanges(integers(counts!, groups), rows).forEach(({ begin, end }, group) => {
        const [a, b, c] = [
          from! + 4 * begin * inner,
          weights! + 4 * group * inner * columns,
          to! + 4 * begin * columns,
        ];
        if (end > begin) gemm(a, b, c, end - begin, columns, inner, 0, transposeW, 0, scratch);
        done = end;
      });
      fill32(to! + 4 * done * columns, 0, (rows - done) * columns);
    };
  },
});
