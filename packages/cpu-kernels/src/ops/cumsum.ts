import { alongDim } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";

export const cumsumKernel: Kernel = kernelOf({
  op: "cumsum",
  // Totals of the columns that are summed together; see `assembly/scan.ts`.
  scratchBytes: () => 4096,
  bind: (node, wasm) => {
    const cumsum = wasm[node.inputs[0]!.dtype === "f32" ? "cumsumF32" : "cumsumI32"]!;
    const { outer, size, inner } = alongDim(node.inputs[0]!.shape, node.params.dim);
    const reverse = node.params.reverse ? 1 : 0;
    return (inputs, outputs, scratch) => void cumsum(inputs[0]!, outputs[0]!, outer, size, inner, reverse, scratch);
  },
});
