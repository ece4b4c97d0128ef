import { fillWord } from "../fill-word.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { padPass } from "../kernels/movement/pad.ts";

/** Writes the input and the surrounding padding in one pass over the output. */
export const padKernel: Kernel = kernelOf({
  op: "pad",
  plan: ({ inputs: [x], params }) => {
    const { low, high, interior } = params;
    const dims = x!.shape.map((size, dim) => ({ size, low: low[dim]!, high: high[dim]!, gap: interior[dim]! }));
    return { passes: [padPass(dims, x!.dtype, fillWord(params.value, x!.dtype))] };
  },
});
