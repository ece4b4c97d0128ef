import type { DType } from "@skein/tensor-core";
import { alongDim } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "./kernel.ts";

/**
 * Element order of each dtype, as a value of `Order` in `assembly/order.ts`. Absent: `argmax` and `argmin` do not
 * support the dtype.
 */
const orders: { readonly [dtype in DType]?: number } = { f32: 0, i32: 1, u32: 2, u8: 3, bool: 3 };

/** Creates the kernel of `argmax` or `argmin`. */
export const argKernel = (op: "argmax" | "argmin"): Kernel =>
  kernelOf({
    op,
    bind: (node, wasm) => {
      const argExtreme = wasm["argExtreme"]!;
      const { outer, size, inner } = alongDim(node.inputs[0]!.shape, node.params.dim);
      const order = orders[node.inputs[0]!.dtype]!;
      const flip = op === "argmax" ? 0 : -1;
      return (inputs, outputs) => void argExtreme(inputs[0]!, outputs[0]!, outer, size, inner, order, flip);
    },
  });
