import type { Graph } from "@skein/tensor-core";
import type { DeviceFacts } from "./kernel.ts";
import { type DispatchStep, lower } from "./lower.ts";
import { checkSupport } from "./support.ts";
import { planForWebGpu, prepareForWebGpu } from "./webgpu-backend.ts";

/** A shader of a graph, and what it is run for. */
export interface ListedShader {
  /** Operators, each once. */
  readonly operators: readonly string[];
  /** Variants of their kernels that share the text: `matmul NN direct 4x4`. */
  readonly labels: readonly string[];
  /** The whole WGSL module, with the entry point `entry`. */
  readonly code: string;
  readonly dispatches: number;
}

/**
 * List the shaders that a traced graph runs on a device, in the order in which each is needed first. Needs the facts of
 * the device, not the device.
 *
 * @param donate inputs whose memory may be written.
 * @throws UnsupportedError where the device cannot run it.
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
