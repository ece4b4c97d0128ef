import { bytesPerElement, elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { storageBits } from "../storage-bits.ts";

export const oneHotKernel: Kernel = kernelOf({
  op: "one-hot",
  bind: (node, wasm) => {
    const oneHot = wasm["oneHot"]!;
    const rows = elementCount(node.inputs[0]!.shape);
    const { dtype, shape } = node.outputs[0]!;
    return (inputs, outputs) =>
      void oneHot(inputs[0]!, outputs[0]!, rows, shape.at(-1)!, storageBits(1, dtype), bytesPerElement[dtype]);
  },
});
