import { compileWasm, createCpuBackend, detectBuild, type WasmBuild } from "@skein/cpu-kernels";
import { AdapterError, createWebGpuBackend, type WebGpuBackend } from "@skein/gpu-kernels";
import type { Backend } from "@skein/tensor-core";
import type { BackendWish } from "../messages.ts";

/** What another rank needs to compute beside this one: the memory of both, and the kernels. */
export interface SharedKernels {
  readonly memory: WebAssembly.Memory;
  readonly module: WebAssembly.Module;
}

export interface OpenedBackend {
  readonly backend: Backend;
  readonly kind: "webgpu" | "cpu";
  /** The adapter's name, or the build of the WebAssembly kernels. */
  readonly device: string;
  /** Why it is not a GPU that trains. */
  readonly notice?: string;
  /** What a second rank shares with this one, or why there can be none. */
  readonly shared: SharedKernels | { readonly missing: string };
  bytesInUse(): number;
}

const softwareNotice = "The browser offers no GPU, only a driver that runs WebGPU on the processor.";

const onWebGpu = (backend: WebGpuBackend): OpenedBackend => ({
  backend,
  kind: "webgpu",
  device: backend.facts.adapter,
  ...(backend.facts.software && {
    notice: `${softwareNotice} The address asks for it (backend=webgpu). Expect a few steps a second.`,
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
 * Open a GPU by WebGPU, or where there is none the WebAssembly backend, with the reason. As with `backend: auto` of
 * skein-train, an adapter that is software is never chosen by itself: it computes on the same processor, by a detour.
 *
 * @throws HostError where neither runs; AdapterError where the address asks for WebGPU and there is none.
 */
export const openBackend = async (wish: BackendWish): Promise<OpenedBackend> => {
  if (wish === "cpu") return openCpu("The address asks for it (backend=cpu).");
  const { gpu } = navigator;
  if (wish === "webgpu" && gpu !== undefined) return onWebGpu(await createWebGpuBackend({ gpu }));
  if (!isSecureContext) return openCpu("WebGPU needs https or localhost, and this page came over plain http.");
  if (gpu === undefined) return openCpu("This browser has no WebGPU.");
  let backend: WebGpuBackend;
  try {
    backend = await createWebGpuBackend({ gpu });
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error;
    return openCpu("This browser has WebGPU, but found no graphics card and driver for it.");
  }
  if (!backend.facts.software) return onWebGpu(backend);
  backend.close();
  return openCpu(softwareNotice);
};
