import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";

export const packBitsKernel: Kernel = kernelOf({
  op: "pack-bits",
  bind: (node, wasm) => {
    const packBits = wasm["packBits"]!;
    const { shape } = node.inputs[0]!;
    const rows = elementCount(shape.slice(0, -1));
    return (inputs, outputs) => void packBits(outputs[0]!, inputs[0]!, rows, shape.at(-1)!);
  },
});
