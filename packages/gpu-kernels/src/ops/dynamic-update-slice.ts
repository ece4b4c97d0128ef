import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { denseCopyPass } from "../kernels/movement/view-copy.ts";
import { writeWindowPass } from "../kernels/movement/window.ts";

/** Copies the base unless the plan shares its memory with the output, then writes the window. */
export const dynamicUpdateSliceKernel: Kernel = kernelOf({
  op: "dynamic-update-slice",
  plan: ({ inputs: [x, update] }, _facts, _choices, placed) => {
    const { dtype, shape } = x!;
    const sizes = update!.shape;
    const copy = placed[0] === true ? [] : [denseCopyPass(elementCount(shape), dtype, "dynamic-update-slice base")];
    return { passes: elementCount(sizes) === 0 ? copy : [...copy, writeWindowPass({ shape, dtype, sizes })] };
  },
});
