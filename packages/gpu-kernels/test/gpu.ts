import { createWebGpuBackend, type WebGpuBackend, type WebGpuBackendOptions } from "../src/index.ts";
import { openNodeGpu } from "../src/node.ts";

// WebGPU instance of the whole process. Kept here, because an instance that is garbage-collected too early aborts the
// process.
export const nodeGpu: Promise<GPU> = openNodeGpu();

/** Whether this machine has an adapter. Tests that need an adapter are skipped if there is none. */
export const hasAdapter: boolean = await (async () => {
  try {
    return (await (await nodeGpu).requestAdapter()) !== null;
  } catch {
    return false;
  }
})();

/** Opens a backend on this machine's adapter. The test must close it at the end. */
export const openBackend = async (options: Omit<WebGpuBackendOptions, "gpu"> = {}): Promise<WebGpuBackend> =>
  createWebGpuBackend({ gpu: await nodeGpu, ...options });
