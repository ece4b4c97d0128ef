import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { concatPasses } from "../kernels/movement/concat.ts";

/** Copies the operands that the memory plan has not placed in the output, several per pass. */
export const concatKernel: Kernel = kernelOf({
  op: "concat",
  plan: ({ inputs, outputs: [y], params }, facts, _, placed) => {
    const dim = params.dim;
    let end = 0;
    const columns = inputs.map(({ shape }, input) => {
      const begin = end;
      const width = elementCount(shape.slice(dim));
      end += width;
      return { input, begin, width };
    });
    const rows = elementCount(y!.shape.slice(0, dim));
    return { passes: concatPasses({ rows, rowWidth: end, columns }, y!.dtype, placed, facts.maxBindings - 1) };
  },
});
