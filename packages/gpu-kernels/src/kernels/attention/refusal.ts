import { formatSpec, type KernelNode } from "@skein/tensor-core/backend";
import type { DeviceFacts } from "../../kernel.ts";

/**
 * Maximum row width. Four rows with this width, and all other data of a kernel, fit in the minimum workgroup memory of
 * 16 KiB.
 */
const maxWidth = 512;

/** Returns the reason why attention cannot run on this device, or undefined if it can run. */
export const attentionRefusal = ({ inputs }: KernelNode, facts: DeviceFacts): string | undefined => {
  const [q] = inputs;
  if (q!.dtype === "f16" && !facts.f16)
    return `${formatSpec(q!)} needs half precision, which this device lacks (shader-f16); cast q, k and v to f32`;
  if (q!.dtype !== "f32" && q!.dtype !== "f16") return `takes f32 and f16, got ${formatSpec(q!)}; cast q, k and v`;
  if (q!.shape[3]! > maxWidth)
    return `heads of ${formatSpec(q!)} are ${q!.shape[3]} wide, at most ${maxWidth} are supported; use more heads`;
  return undefined;
};
