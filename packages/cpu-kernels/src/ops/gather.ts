import { bytesPerElement, elementCount } from "@skein/tensor-core";
import { invalidValue } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { fillPattern } from "../strided-copy.ts";

export const gatherKernel: Kernel = kernelOf({
  op: "gather",
  bind: ({ inputs: [x, indices], params }, wasm) => {
    const gatherRows = wasm["gatherRows"]!;
    const { dtype, shape } = x!;
    const dim = params.dim;
    const outer = elementCount(shape.slice(0, dim));
    const rowBytes = elementCount(shape.slice(dim + 1)) * bytesPerElement[dtype];
    const count = elementCount(indices!.shape);
    const pattern = fillPattern(params.outside === "zero" ? 0 : invalidValue[dtype], dtype);
    return (inputs, outputs) =>
      void gatherRows(outputs[0]!, inputs[0]!, inputs[1]!, outer, shape[dim]!, rowBytes, count, pattern);
  },
});
