import type { KernelNode } from "@skein/tensor-core/backend";
import type { DeviceFacts } from "../../kernel.ts";

/**
 * Returns the reason to refuse operands that are neither f32 nor f16, or f16 operands on a device without f16.
 * Undefined if the device supports all operands.
 */
export const refusesHalf = (node: KernelNode, facts: DeviceFacts): string | undefined => {
  const specs = [...node.inputs, ...node.outputs];
  const other = specs.find(({ dtype }) => dtype !== "f32" && dtype !== "f16");
  if (other !== undefined) return `it runs on f32 and f16, not ${other.dtype}; cast its operands to f32`;
  if (facts.f16 || specs.every(({ dtype }) => dtype === "f32")) return undefined;
  return "it needs f16, but this adapter has no shader-f16; cast the operands to f32 and leave the result f32";
};
