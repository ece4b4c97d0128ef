import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";

export const unpackBitsKernel: Kernel = kernelOf({
  op: "unpack-bits",
  bind: (node, wasm) => {
    const unpackBits = wasm["unpackBits"]!;
    const { shape } = node.outputs[0]!;
    const rows = elementCount(shape.slice(0, -1));
    return (inputs, outputs) => void unpackBits(outputs[0]!, inputs[0]!, rows, shape.at(-1)!);
  },
});
