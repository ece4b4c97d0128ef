import { elementCount } from "@skein/tensor-core";
import { alongDim, invalidValue } from "@skein/tensor-core/backend";
import { fillWord } from "../fill-word.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { gatherPass } from "../kernels/indexing/gather.ts";

export const gatherKernel: Kernel = kernelOf({
  op: "gather",
  plan: ({ inputs: [x, indices], params }) => {
    const { dtype, shape } = x!;
    const dim = params.dim;
    const sizes = { ...alongDim(shape, dim), count: elementCount(indices!.shape) };
    return { passes: [gatherPass(sizes, dtype, fillWord(params.outside === "zero" ? 0 : invalidValue[dtype], dtype))] };
  },
});
