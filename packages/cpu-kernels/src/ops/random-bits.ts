import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";

export const randomBitsKernel: Kernel = kernelOf({
  op: "random-bits",
  scratchBytes: () => 8,
  bind: (node, wasm) => {
    const randomBits = wasm["randomBits"]!;
    const count = elementCount(node.outputs[0]!.shape);
    return (inputs, outputs, scratch) => void randomBits(inputs[0]!, outputs[0]!, count, scratch);
  },
});
