import { type Kernel, kernelOf } from "../kernel.ts";

export const nonzeroKernel: Kernel = kernelOf({
  op: "nonzero",
  bind: ({ inputs: [mask], params }, wasm) => {
    const nonzero = wasm["nonzero"]!;
    const n = mask!.shape[0]!;
    const capacity = params.capacity;
    return (inputs, outputs) => void nonzero(inputs[0]!, outputs[0]!, outputs[1]!, n, capacity);
  },
});
