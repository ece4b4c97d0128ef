import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/** `max(x, 0)`; the gradient at 0 is 0. */
export const relu = (x: Tensor): Tensor => emitOne("relu", [x]);

/** Gaussian error linear unit. `approximate: "tanh"` takes the cheaper formula that GPT-2 was trained with. */
export const gelu = (x: Tensor, { approximate = "none" }: { readonly approximate?: "none" | "tanh" } = {}): Tensor =>
  emitOne("gelu", [x], { approximate: approximate === "tanh" });

/** `x · sigmoid(x)` */
export const silu = (x: Tensor): Tensor => emitOne("silu", [x]);

/** `log(1 + e^x)` */
export const softplus = (x: Tensor): Tensor => emitOne("softplus", [x]);
