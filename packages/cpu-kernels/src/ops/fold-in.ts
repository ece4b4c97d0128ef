import { type Kernel, kernelOf } from "../kernel.ts";

export const foldInKernel: Kernel = kernelOf({
  op: "fold-in",
  bind: (_, wasm) => {
    const foldIn = wasm["foldIn"]!;
    return (inputs, outputs) => void foldIn(inputs[0]!, inputs[1]!, outputs[0]!);
  },
});
