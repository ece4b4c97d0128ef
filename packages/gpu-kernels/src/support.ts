import { byteLength, type Graph, UnsupportedError } from "@skein/tensor-core";
import { formatSpec, kernelNodeOf, missingKernelReason, roleOf } from "@skein/tensor-core/backend";
import type { DeviceFacts } from "./kernel.ts";
import { kernels as ownKernels, type KernelTable } from "./kernel-table.ts";

/**
 * Returns all reasons why an optimized graph cannot run on a device. Empty if the graph can run.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(unsupportedOnWebGpu(prepareForWebGpu(graph, minimalDevice), minimalDevice)); // []
 * ```
 */
export const unsupportedOnWebGpu = (graph: Graph, facts: DeviceFacts, kernels: KernelTable = ownKernels): string[] => {
  const reasons = graph.nodes.flatMap((node) => {
    const where = `${node.op}${node.scope === "" ? "" : ` (${node.scope})`}`;
    const large = node.specs.find((spec) => byteLength(spec) > facts.maxBindingBytes);
    if (large !== undefined)
      return [
        `${where}: its ${formatSpec(large)} has ${byteLength(large)} bytes, but a kernel of this device may bind ${facts.maxBindingBytes} (maxStorageBufferBindingSize); use a smaller batch or split the tensor`,
      ];
    if (roleOf(node) !== undefined) return [];
    const kernel = kernels[node.op];
    const reason =
      kernel === undefined ? missingKernelReason(node.op, kernels) : kernel.refuses?.(kernelNodeOf(graph, node), facts);
    return reason === undefined ? [] : [`${where}: ${reason}`];
  });
  return [...new Set(reasons)];
};

export const checkSupport = (graph: Graph, facts: DeviceFacts, kernels?: KernelTable): void => {
  const reasons = unsupportedOnWebGpu(graph, facts, kernels);
  if (reasons.length > 0)
    throw new UnsupportedError(
      `the webgpu backend cannot run this graph on ${facts.adapter}:\n${reasons.map((reason) => `  ${reason}`).join("\n")}`,
    );
};
