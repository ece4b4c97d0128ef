import { Arena, type CpuBackendOptions, createCpuBackend } from "@skein/cpu-kernels";
import type { HostMemory, WebGpuBackend } from "@skein/gpu-kernels";
import type { Backend } from "@skein/tensor-core";

/** Name of a compute backend. */
export type BackendName = "cpu" | "webgpu";

/**
 * Returns an allocator of host memory for collectives. The memory is shared by all ranks of the process, so that other
 * ranks can read the data in place.
 */
export const arenaHostMemory = (arena: Arena): HostMemory => ({
  allocate: (bytes) => arena.bytesAt(arena.allocate(bytes), bytes),
  release: (bytes) => arena.release(bytes.byteOffset),
});

/** An open backend with the function that closes it. */
export interface OpenBackend {
  readonly backend: Backend;
  close(): void | Promise<void>;
}

/** Opens a WebGPU device in Node. @throws AdapterError if there is no device. */
export const openWebGpu = async (hostMemory?: HostMemory): Promise<WebGpuBackend> => {
  // Imported on demand, so that a rank on the CPU does not load the 220 modules of the GPU backend when it starts.
  const [{ createWebGpuBackend }, { openNodeGpu }] = await Promise.all([
    import("@skein/gpu-kernels"),
    import("@skein/gpu-kernels/node"),
  ]);
  return createWebGpuBackend({ gpu: await openNodeGpu(), ...(hostMemory && { hostMemory }) });
};

/** Opens the backend of one rank. All ranks of the process share `options.memory`. */
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
