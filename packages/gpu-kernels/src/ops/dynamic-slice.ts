import { type Kernel, kernelOf } from "../kernel.ts";
import { readWindowPass } from "../kernels/movement/window.ts";

export const dynamicSliceKernel: Kernel = kernelOf({
  op: "dynamic-slice",
  plan: ({ inputs: [x], params: { sizes } }) => ({ passes: [readWindowPass({ ...x!, sizes })] }),
});
