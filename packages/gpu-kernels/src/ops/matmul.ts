import { formatSpec } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { chooseVariant } from "../kernels/matmul/choose.ts";
import { productOf } from "../kernels/matmul/product.ts";

/**
 * Computes `y[..., m, n] = Σₖ a · b` with the variant that was measured as fastest for the sizes on this device, or
 * with the variant chosen by rule; see `kernels/matmul/`.
 */
export const matmulKernel: Kernel = kernelOf({
  op: "matmul",
  refuses: ({ inputs, outputs }, facts) => {
    const specs = [...inputs, ...outputs];
    const other = specs.find(({ dtype }) => dtype !== "f32" && dtype !== "f16");
    if (other !== undefined) return `it multiplies f32 or f16, not ${formatSpec(other)}; cast the operands first`;
    const half = specs.find(({ dtype }) => dtype === "f16");
    return half === undefined || facts.f16
      ? undefined
      : `its ${formatSpec(half)} is f16, but this adapter has no shader-f16; cast the operands to f32, or train in f32`;
  },
  plan: (node, facts, choices) => {
    const product = productOf(node);
    return chooseVariant(product, facts, choices).plan(product, facts);
  },
});
