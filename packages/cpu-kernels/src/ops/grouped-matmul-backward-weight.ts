import { groupRanges } from "@skein/tensor-core/backend";
import { productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { integersAt } from "../run-time-integers.ts";

/** One product over the rows of each group; a group without rows is an empty sum. */
export const groupedMatmulBackwardWeightKernel: Kernel = kernelOf({
  op: "grouped-matmul-backward-weight",
  scratchBytes: ({ inputs: [x, g] }) => productScratchBytes(x!.shape[1]!, g!.shape[1]!, x!.shape[0]!),
  bind: ({ inputs: [x, g], outputs: [dw] }, wasm, memory) => {
    const gemm = wasm["gemm"]!;
    const [rows, inner] = x!.shape as [number, number];
    const columns = g!.shape[1]!;
    const groups = dw!.shape[0]!;
    const integers = integersAt(memory);
    return ([from, gradients, counts], [to], scratch) =>
      groupRanges(integers(counts!, groups), rows).forEach(({ begin, end }, group) => {
        const [a, b, c] = [
          from! + 4 * begin * inner,
          gradients! + 4 * begin * columns,
          to! + 4 * group * inner * columns,
        ];
        gemm(a, b, c, inner, columns, end - begin, 1, 0, 0, scratch);
      });
  },
});
