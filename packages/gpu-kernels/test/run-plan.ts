import { byteLength, type NdArray, type TensorSpec } from "@skein/tensor-core";
import type { KernelNode, Params } from "@skein/tensor-core/backend";
import type { WebGpuDevice } from "../src/device.ts";
import type { BindingSource, KernelPlan } from "../src/kernel.ts";
import { PipelineCache } from "../src/pipeline-cache.ts";
import { resolveBindings } from "../src/resolve-bindings.ts";
import { gridGroups, gridOf, shaderModule } from "../src/shader.ts";

const roundUp = (bytes: number): number => Math.max(16, Math.ceil(bytes / 16) * 16);

/**
 * Value of the bytes after the last element of each operand, and of scratch memory before a run. These bytes are NaN in
 * every float format.
 */
const filler = 0xff;

/**
 * Runs the plan of one kernel on a device, outside of any graph. Every operand and scratch block has its own buffer,
 * with a guard of NaN after the padding. Returns the bits of the outputs.
 *
 * @throws if a pass writes after the end of an output.
 */
export const runPlan = async (
  device: WebGpuDevice,
  plan: KernelPlan,
  inputs: readonly NdArray[],
  outputs: readonly TensorSpec[],
): Promise<ArrayBuffer[]> => {
  const { gpu } = device;
  const pipelines = new PipelineCache(device);
  const guard = 256;
  const make = (bytes: number, content?: Uint8Array): GPUBuffer => {
    // STORAGE | COPY_SRC | COPY_DST
    const buffer = gpu.createBuffer({ size: roundUp(bytes) + guard, usage: 0x80 | 0x04 | 0x08 });
    const all = new Uint8Array(roundUp(bytes) + guard).fill(filler);
    if (content !== undefined) all.set(content);
    gpu.queue.writeBuffer(buffer, 0, all);
    return buffer;
  };
  const buffers = {
    input: inputs.map((array) => make(byteLength(array), new Uint8Array(array.bytes()))),
    output: outputs.map((spec) => make(byteLength(spec))),
    scratch: (plan.scratch ?? []).map((bytes) => make(bytes)),
    constants: (plan.constants ?? []).map((bytes) => make(bytes.byteLength, bytes)),
  };
  const sizes = {
    input: inputs.map((array) => byteLength(array)),
    output: outputs.map((spec) => byteLength(spec)),
    scratch: plan.scratch ?? [],
    constants: (plan.constants ?? []).map((bytes) => bytes.byteLength),
  };
  const locate = (source: BindingSource): { list: keyof typeof buffers; index: number } => {
    const [[list, index]] = Object.entries(source) as [[keyof typeof buffers, number]];
    return { list, index };
  };
  const encoder = gpu.createCommandEncoder();
  for (const pass of plan.passes) {
    // Each operand is a separate region, so no binding is renamed.
    const all = pass.bindings.map(({ source }) => locate(source));
    const regions = [...new Set(all.map(({ list, index }) => `${list} ${index}`))];
    const { variables, renamed } = resolveBindings(
      pass.bindings.map((binding, i) => ({
        binding,
        at: {
          region: regions.indexOf(`${all[i]!.list} ${all[i]!.index}`),
          offset: 0,
          bytes: roundUp(sizes[all[i]!.list][all[i]!.index]!),
        },
      })),
      regions.length,
      256,
    );
    const grid = gridOf(pass.groups);
    const code = shaderModule({ pass, variables, renamed, guarded: gridGroups(grid) !== pass.groups, sliced: false });
    const kinds = [
      ...variables.map(({ writable }) => (writable ? ("write" as const) : ("read" as const))),
      ...(pass.sizes ? (["uniform"] as const) : []),
    ];
    const { layout, ready } = pipelines.get(code, kinds, pass.label);
    const entries: GPUBindGroupEntry[] = variables.map(({ at }, binding) => {
      const [list, index] = regions[at.region]!.split(" ") as [keyof typeof buffers, string];
      return { binding, resource: { buffer: buffers[list][Number(index)]!, size: at.bytes } };
    });
    if (pass.sizes !== undefined) {
      const words = Uint32Array.from(Object.values(pass.sizes));
      // UNIFORM | COPY_DST
      const uniform = gpu.createBuffer({ size: Math.max(16, words.byteLength), usage: 0x40 | 0x08 });
      gpu.queue.writeBuffer(uniform, 0, words);
      entries.push({ binding: variables.length, resource: { buffer: uniform } });
    }
    const compute = encoder.beginComputePass();
    compute.setPipeline(await ready);
    compute.setBindGroup(0, gpu.createBindGroup({ layout, entries }));
    compute.dispatchWorkgroups(...grid);
    compute.end();
  }
  // MAP_READ | COPY_DST
  const staging = outputs.map((_, i) => gpu.createBuffer({ size: buffers.output[i]!.size, usage: 0x01 | 0x08 }));
  staging.forEach((to, i) => encoder.copyBufferToBuffer(buffers.output[i]!, 0, to, 0, to.size));
  gpu.queue.submit([encoder.finish()]);
  const results: ArrayBuffer[] = [];
  for (const [i, from] of staging.entries()) {
    await device.settle(from.mapAsync(1)); // MAP_READ
    const bytes = from.getMappedRange().slice(0);
    from.destroy();
    const size = byteLength(outputs[i]!);
    if (new Uint8Array(bytes, roundUp(size)).some((byte) => byte !== filler))
      throw new Error(`${plan.passes.map(({ label }) => label).join(", ")} wrote after the end of output ${i}`);
    results.push(bytes.slice(0, size));
  }
  for (const list of Object.values(buffers)) for (const buffer of list) buffer.destroy();
  return results;
};

/** Creates the node to plan. */
export const nodeOf = <P extends Params = Params>(
  op: string,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  params: P,
): KernelNode<P> => ({
  op,
  inputs,
  outputs,
  params,
});
