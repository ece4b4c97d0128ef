import { createWebGpuBackend, type WebGpuBackend, type WebGpuBackendOptions } from "../src/index.ts";
import { openNodeGpu } from "../src/node.ts";

// One instance for the whole process, because an instance that is garbage-collected too early aborts the process.
export const nodeGpu: Promise<GPU> = openNodeGpu();

/** Whether there is an adapter. Tests that need an adapter are skipped by name without one. */
export const hasAdapter: boolean = await (async () => {
  try {
    return (await (await nodeGpu).requestAdapter()) !== null;
  } catch {
    return false;
  }
})();

/** A backend on this machine's adapter. Close it when the tests are done. */
export const openBackend = async (options: Omit<WebGpuBackendOptions, "gpu"> = {}): Promise<WebGpuBackend> =>
  createWebGpuBackend({ gpu: await nodeGpu, ...options });
