import { Arena, type CpuBackendOptions, createCpuBackend } from "@skein/cpu-kernels";
import type { HostMemory, WebGpuBackend } from "@skein/gpu-kernels";
import type { Backend } from "@skein/tensor-core";

/** What a run computes on. */
export type BackendName = "cpu" | "webgpu";

/** Memory for what collectives carry, in the world's shared memory, where peers read it in place. */
export const arenaHostMemory = (arena: Arena): HostMemory => ({
  allocate: (bytes) => arena.bytesAt(arena.allocate(bytes), bytes),
  release: (bytes) => arena.release(bytes.byteOffset),
});

/** A backend, and how to end it. */
export interface OpenBackend {
  readonly backend: Backend;
  close(): void | Promise<void>;
}

/** Open a WebGPU device in Node. @throws AdapterError where there is none. */
export const openWebGpu = async (hostMemory?: HostMemory): Promise<WebGpuBackend> => {
  // Only here, so that a rank on the CPU does not read its 220 modules before it begins.
  const [{ createWebGpuBackend }, { openNodeGpu }] = await Promise.all([
    import("@skein/gpu-kernels"),
    import("@skein/gpu-kernels/node"),
  ]);
  return createWebGpuBackend({ gpu: await openNodeGpu(), ...(hostMemory && { hostMemory }) });
};

/** The backend of one rank. @param memory shared by the ranks of the process. */
export const openBackend = async (
  name: BackendName,
  options: CpuBackendOptions & { readonly memory: WebAssembly.Memory },
): Promise<OpenBackend> => {
  if (name === "cpu") {
    const backend = await createCpuBackend(options);
    return { backend, close: () => backend.close() };
  }
  const backend = await openWebGpu(arenaHostMemory(new Arena(options.memory)));
  return { backend, close: () => backend.close() };
};
