import type { DType, Graph } from "@skein/tensor-core";
import { type Node, nodeCost, specOf } from "@skein/tensor-core/backend";
import type { ComputeType, Device } from "../hardware/hardware.ts";
import { roofline, type Work } from "../hardware/roofline.ts";
import { type Basis, efficiencyLookup } from "./efficiency.ts";

/** What a kernel is expected to take, and why. */
export interface KernelPrice extends Work {
  /** With the start of the kernel. */
  readonly seconds: number;
  /** The least that the device could take, without the start. */
  readonly rooflineSeconds: number;
  readonly boundBy: "flops" | "bytes" | "start";
  readonly basis: Basis;
}

/** Prices some work of an operator on one device. */
export type KernelPricer = (operator: string, work: Work, type?: ComputeType) => KernelPrice;

/** Price kernels on a device: start + roofline / efficiency. Default type: f32. */
export const kernelPricer = (device: Device): KernelPricer => {
  const efficiencyOf = efficiencyLookup(device);
  const { kernelStartSeconds } = device;
  return (operator, work, type = "f32") => {
    const { seconds: rooflineSeconds, boundBy } = roofline(device, work, type);
    const { value, basis } = efficiencyOf(operator, work);
    const working = rooflineSeconds / value;
    return {
      ...work,
      seconds: kernelStartSeconds + working,
      rooflineSeconds,
      boundBy: working < kernelStartSeconds ? "start" : boundBy,
      basis,
    };
  };
};

/** Operands that are narrower than f32 are multiplied as what they are; indices and masks are not multiplied. */
const computeTypes: { readonly [dtype in DType]?: ComputeType } = { f16: "f16", bf16: "bf16" };

/** Say as what a node's first operand is multiplied. */
export const computeTypeOf = (graph: Graph, node: Node): ComputeType => {
  const [operand] = node.inputs;
  return (operand && computeTypes[specOf(graph, operand).dtype]) ?? "f32";
};

/** The work of one node by its operator's own rule: every operand and result goes through memory once. */
export const nodeWork = (graph: Graph, node: Node): Work => {
  const { flops, bytesRead, bytesWritten } = nodeCost(graph, node);
  return { flops, bytes: bytesRead + bytesWritten };
};
