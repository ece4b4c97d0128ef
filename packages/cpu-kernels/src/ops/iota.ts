import { alongDim } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";

export const iotaKernel: Kernel = kernelOf({
  op: "iota",
  bind: (node, wasm) => {
    const iota = wasm["iota"]!;
    const { outer, size, inner } = alongDim(node.outputs[0]!.shape, node.params.dim);
    const float = node.outputs[0]!.dtype === "f32" ? 1 : 0;
    return (_, outputs) => void iota(outputs[0]!, outer, size, inner, float);
  },
});
