import { byteLength, elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";

/** Copies the base unless the plan shares its memory with the output, then adds the updates row by row. */
export const scatterAddKernel: Kernel = kernelOf({
  op: "scatter-add",
  bind: ({ inputs: [base, indices], params }, wasm) => {
    const copyDense = wasm["copyDense"]!;
    const scatterAdd = wasm[base!.dtype === "f32" ? "scatterAddF32" : "scatterAddI32"]!;
    const { shape } = base!;
    const dim = params.dim;
    const bytes = byteLength(base!);
    const outer = elementCount(shape.slice(0, dim));
    const inner = elementCount(shape.slice(dim + 1));
    const count = elementCount(indices!.shape);
    return (inputs, outputs) => {
      if (inputs[0] !== outputs[0]) copyDense(outputs[0]!, inputs[0]!, bytes);
      scatterAdd(outputs[0]!, inputs[1]!, inputs[2]!, outer, shape[dim]!, inner, count);
    };
  },
});
