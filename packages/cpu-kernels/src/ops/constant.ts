import { bytesPerElement, elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { storageBits } from "../storage-bits.ts";

export const constantKernel: Kernel = kernelOf({
  op: "constant",
  bind: (node, wasm) => {
    const { dtype, shape } = node.outputs[0]!;
    const fill = wasm[`fill${8 * bytesPerElement[dtype]}`]!;
    const bits = storageBits(Number(node.params.value), dtype);
    const count = elementCount(shape);
    return (_, outputs) => void fill(outputs[0]!, bits, count);
  },
});
