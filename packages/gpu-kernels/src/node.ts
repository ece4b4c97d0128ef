import { AdapterError } from "./errors.ts";

/**
 * Open WebGPU in Node, through the optional package `webgpu` (Dawn). Keep the result only as long as the backend: a stored instance
 * keeps the process from a clean exit.
 *
 * @param flags of Dawn: `backend=vulkan`, `adapter=llvmpipe`, `enable-dawn-features=…`.
 * @throws AdapterError with the install command where the package is missing.
 */
export const openNodeGpu = async (flags: readonly string[] = []): Promise<GPU> => {
  let dawn: { create(flags: string[]): GPU; globals: object };
  try {
    dawn = (await import("webgpu")) as never;
  } catch (error) {
    throw new AdapterError("WebGPU in Node needs the package webgpu; install it: npm install webgpu", { cause: error });
  }
  for (const [name, value] of Object.entries(dawn.globals)) (globalThis as Record<string, unknown>)[name] ??= value;
  return dawn.create(["enable-dawn-features=allow_unsafe_apis", ...flags]);
};
