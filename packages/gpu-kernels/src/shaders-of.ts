import type { Graph } from "@skein/tensor-core";
import type { DeviceFacts } from "./kernel.ts";
import { type DispatchStep, lower } from "./lower.ts";
import { checkSupport } from "./support.ts";
import { planForWebGpu, prepareForWebGpu } from "./webgpu-backend.ts";

/** A shader of a graph, and the operators and kernel variants that use the shader. */
export interface ListedShader {
  /** Names of operators that use the shader, without duplicates. */
  readonly operators: readonly string[];
  /** Labels of the kernel variants that compile to this WGSL module, such as `matmul NN direct 4x4`. */
  readonly labels: readonly string[];
  /** The complete WGSL module, with the entry point `entry`. */
  readonly code: string;
  readonly dispatches: number;
}

/**
 * Lists the shaders that a traced graph runs on a device, in order of first use. Needs the device's `DeviceFacts`, not
 * the device.
 *
 * @param donate Indices of the inputs whose memory may be written.
 * @throws UnsupportedError if the device cannot run the graph.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(shadersOf(graph, minimalDevice).length); // 1
 * ```
 */
export const shadersOf = (
  source: Graph,
  facts: DeviceFacts,
  { donate = [] }: { readonly donate?: readonly number[] } = {},
): readonly ListedShader[] => {
  const graph = prepareForWebGpu(source, facts);
  checkSupport(graph, facts);
  const { steps } = lower(graph, planForWebGpu(graph, facts, donate), facts, {});
  const dispatches = steps.filter((step): step is DispatchStep => step.kind === "dispatch");
  return [...Map.groupBy(dispatches, ({ code }) => code)].map(([code, same]) => ({
    operators: [...new Set(same.map(({ node }) => node.op))],
    labels: [...new Set(same.map(({ label }) => label))],
    code,
    dispatches: same.reduce((sum, { slices }) => sum + slices.length, 0),
  }));
};
