import { type Kernel, kernelOf } from "../kernel.ts";

export const compactKernel: Kernel = kernelOf({
  op: "compact",
  bind: ({ inputs: [x], params }, wasm) => {
    const compact = wasm["compact"]!;
    const n = x!.shape[0]!;
    const capacity = params.capacity;
    return ([flat, bound], [values, indices, count, greatest]) =>
      void compact(flat!, bound!, values!, indices!, count!, greatest!, n, capacity);
  },
});
