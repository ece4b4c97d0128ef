import { elementCount } from "@skein/tensor-core";
import { alongDim } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { scatterAddFloats, scatterAddIntegersPass } from "../kernels/indexing/scatter-add.ts";
import { denseCopyPass } from "../kernels/movement/view-copy.ts";

/** Copies the base unless the plan shares its memory with the output, then adds the rows in order. */
export const scatterAddKernel: Kernel = kernelOf({
  op: "scatter-add",
  plan: ({ inputs: [base, indices, updates], params }, _facts, _choices, placed) => {
    const { dtype, shape } = base!;
    const dim = params.dim;
    const sizes = { ...alongDim(shape, dim), count: elementCount(indices!.shape) };
    const copy = placed[0] === true ? [] : [denseCopyPass(elementCount(shape), dtype, "scatter-add base")];
    if (elementCount(updates!.shape) === 0) return { passes: copy };
    const add = dtype === "f32" ? scatterAddFloats(sizes) : { passes: [scatterAddIntegersPass(sizes)] };
    return { ...add, passes: [...copy, ...add.passes] };
  },
});
