import type { DType, Graph } from "@skein/tensor-core";
import { type Node, nodeCost, specOf } from "@skein/tensor-core/backend";
import type { ComputeType, ComputeDevice } from "../hardware/hardware.ts";
import { roofline, type Work } from "../hardware/roofline.ts";
import { type Basis, efficiencyLookup } from "./efficiency.ts";

/** Predicted time of a kernel, and whether arithmetic or memory limits it. */
export interface KernelPrice extends Work {
  /** Predicted seconds, including the launch of the kernel. */
  readonly seconds: number;
  /** Roofline seconds, without the launch of the kernel. */
  readonly rooflineSeconds: number;
  readonly boundBy: "flops" | "bytes" | "start";
  readonly basis: Basis;
}

/** Function that predicts the time of an operator's work on one device: its price. */
export type KernelPricer = (operator: string, work: Work, type?: ComputeType) => KernelPrice;

/**
 * Builds a pricer for kernels on a device: a function that predicts launch + roofline / efficiency, in seconds. Default
 * operand type: f32.
 *
 * @example
 * ```ts
 * const price = kernelPricer(shippedHardware[0]!.device);
 * console.log(price("add", { flops: 1e6, bytes: 12e6 }).boundBy); // bytes
 * ```
 */
export const kernelPricer = (device: ComputeDevice): KernelPricer => {
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

/**
 * Operand types of matrix products that are narrower than f32. Index and mask types are not listed, because they are
 * never multiplied.
 */
const computeTypes: { readonly [dtype in DType]?: ComputeType } = { f16: "f16", bf16: "bf16" };

/**
 * Returns the operand type of a node's matrix products, derived from the data type of the node's first operand. Data
 * types that are not narrower than f32 count as f32.
 */
export const computeTypeOf = (graph: Graph, node: Node): ComputeType => {
  const [operand] = node.inputs;
  return (operand && computeTypes[specOf(graph, operand).dtype]) ?? "f32";
};

/**
 * Returns the work of one node by the cost rule of its operator: every operand and result passes through memory once.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => square(x), [{ dtype: "f32", shape: [1024] }]);
 * console.log(nodeWork(graph, graph.nodes.at(-1)!)); // { flops: 1024, bytes: 12288 }
 * ```
 */
export const nodeWork = (graph: Graph, node: Node): Work => {
  const { flops, bytesRead, bytesWritten } = nodeCost(graph, node);
  return { flops, bytes: bytesRead + bytesWritten };
};
