import { createCpuBackend, detectBuild, type WasmBuild } from "@skein/cpu-kernels";
import { AdapterError, createWebGpuBackend } from "@skein/gpu-kernels";
import type { Backend } from "@skein/tensor-core";

export interface OpenedBackend {
  readonly backend: Backend;
  readonly kind: "webgpu" | "cpu";
  /** The adapter's name, or the build of the WebAssembly kernels. */
  readonly device: string;
  /** Why it is not a GPU that trains. */
  readonly notice?: string;
  bytesInUse(): number;
}

const openWebGpu = async (gpu: GPU): Promise<OpenedBackend> => {
  const backend = await createWebGpuBackend({ gpu });
  const { adapter, software } = backend.facts;
  return {
    backend,
    kind: "webgpu",
    device: adapter,
    ...(software && { notice: "The browser offers no GPU, only a driver that runs WebGPU on the processor. Expect a few steps a second." }),
    bytesInUse: () => backend.bytesInUse(),
  };
};

const buildTitles: Readonly<Record<WasmBuild, string>> = { relaxed: "relaxed SIMD", simd: "SIMD", scalar: "scalar" };

const openCpu = async (reason: string): Promise<OpenedBackend> => {
  const build = await detectBuild();
  const backend = await createCpuBackend({ build });
  return {
    backend,
    kind: "cpu",
    device: `${buildTitles[build]} build, one thread`,
    notice: `${reason} Training runs on the WebAssembly backend instead.`,
    bytesInUse: () => backend.arena.bytesInUse,
  };
};

/**
 * Open WebGPU, or where the browser has none the WebAssembly backend, with the reason.
 *
 * @throws HostError where neither runs: the page is not cross-origin isolated.
 */
export const openBackend = async (wish: "best" | "cpu"): Promise<OpenedBackend> => {
  if (wish === "cpu") return openCpu("The address asks for it (backend=cpu).");
  if (!isSecureContext) return openCpu("WebGPU needs https or localhost, and this page came over plain http.");
  if (navigator.gpu === undefined) return openCpu("This browser has no WebGPU.");
  try {
    return await openWebGpu(navigator.gpu);
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error;
    return openCpu("This browser has WebGPU, but found no graphics card and driver for it.");
  }
};
