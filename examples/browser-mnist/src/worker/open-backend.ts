import { compileWasm, createCpuBackend, detectBuild, type WasmBuild } from "@skein/cpu-kernels";
import { AdapterError, createWebGpuBackend, type WebGpuBackend } from "@skein/gpu-kernels";
import type { Backend } from "@skein/tensor-core";
import type { BackendWish } from "../messages.ts";

/** Memory and kernels shared with a second rank. */
export interface SharedKernels {
  readonly memory: WebAssembly.Memory;
  readonly module: WebAssembly.Module;
}

export interface OpenedBackend {
  readonly backend: Backend;
  readonly kind: "webgpu" | "cpu";
  /** Name of the GPU adapter, or of the build of the WebAssembly kernels. */
  readonly device: string;
  /** Reason why training does not use a GPU. Absent: training uses a GPU. */
  readonly notice?: string;
  /** Memory and kernels for a second rank, or the reason why a second rank is impossible. */
  readonly shared: SharedKernels | { readonly missing: string };
  bytesInUse(): number;
}

const softwareNotice = "The browser has no GPU, only a software driver that runs WebGPU on the CPU.";

const onWebGpu = (backend: WebGpuBackend): OpenedBackend => ({
  backend,
  kind: "webgpu",
  device: backend.facts.adapter,
  ...(backend.facts.software && {
    notice: `${softwareNotice} The address requests it (backend=webgpu). Expect a few steps per second.`,
  }),
  shared: { missing: "two ranks train on WebAssembly: add ?backend=cpu to the address" },
  bytesInUse: () => backend.bytesInUse(),
});

const buildTitles: Readonly<Record<WasmBuild, string>> = { relaxed: "relaxed SIMD", simd: "SIMD", scalar: "scalar" };

const openCpu = async (reason: string): Promise<OpenedBackend> => {
  const build = await detectBuild();
  const module = await compileWasm(build);
  const backend = await createCpuBackend({ module });
  const shared: OpenedBackend["shared"] = crossOriginIsolated
    ? { memory: backend.memory, module }
    : { missing: "workers cannot share memory on this page: its server sends no COOP and COEP headers" };
  return {
    backend,
    kind: "cpu",
    device: `${buildTitles[build]} build${crossOriginIsolated ? "" : ", one thread, since the page is not cross-origin isolated"}`,
    notice: `${reason} Training runs on the WebAssembly backend instead.`,
    shared,
    bytesInUse: () => backend.arena.bytesInUse,
  };
};

/**
 * Opens a GPU with WebGPU. If there is no GPU, opens the WebAssembly backend, and returns the reason. Like `backend:
 * auto` of skein-train, this function never chooses a software adapter by default, because a software adapter computes
 * on the same CPU less efficiently.
 *
 * @throws HostError if neither backend works; AdapterError if the query string requests WebGPU and there is no adapter.
 */
export const openBackend = async (wish: BackendWish): Promise<OpenedBackend> => {
  if (wish === "cpu") return openCpu("The address requests it (backend=cpu).");
  const { gpu } = navigator;
  if (wish === "webgpu" && gpu !== undefined) return onWebGpu(await createWebGpuBackend({ gpu }));
  if (!isSecureContext) return openCpu("WebGPU needs https or localhost, but this page was loaded over plain http.");
  if (gpu === undefined) return openCpu("This browser has no WebGPU.");
  let backend: WebGpuBackend;
  try {
    backend = await createWebGpuBackend({ gpu });
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error;
    return openCpu("This browser has WebGPU, but no graphics card and driver for it.");
  }
  if (!backend.facts.software) return onWebGpu(backend);
  backend.close();
  return openCpu(softwareNotice);
};
