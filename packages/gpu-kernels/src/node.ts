import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { otherWriters, warnAboutCache } from "@skein/native-addon/node";
import { type ChoiceStore, storeKey } from "./autotune/choice-store.ts";
import { readMatmulModel } from "./autotune/parse-matmul-model.ts";
import { AdapterError, WebGpuNotInstalledError } from "./errors.ts";
import { brakes, EventLoopBrake } from "./event-loop-brake.ts";
import type { Gpu } from "./platform-types.ts";

/** Command that installs the WebGPU package for Node, in the versions of our `peerDependencies`. */
export const installWebGpu = 'npm install "webgpu@^0.6.2"';

/** Converts a failed import of `webgpu` to an error: the package is missing, or it cannot be loaded. */
const explainImport = (error: unknown): AdapterError => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ERR_MODULE_NOT_FOUND" && message.includes("'webgpu'"))
    return new WebGpuNotInstalledError(installWebGpu, { cause: error });
  return new AdapterError(
    `the package webgpu is installed but does not start (${message.split("\n")[0]}); install it again, for this system, with: ${installWebGpu}`,
    { cause: error },
  );
};

/**
 * Opens WebGPU in Node, with the optional package `webgpu` (Dawn). Do not keep the result longer than the backend: a
 * stored instance prevents a clean exit of the process.
 *
 * @param flags Dawn flags, such as `backend=vulkan`, `adapter=llvmpipe`, `enable-dawn-features=…`.
 * @throws WebGpuNotInstalledError, with the install command, if the package is missing; AdapterError if the package
 * cannot be loaded.
 * @example
 * ```ts
 * const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
 * console.log(backend.name); // webgpu
 * await backend.close();
 * ```
 */
export const openNodeGpu = async (flags: readonly string[] = []): Promise<Gpu> => {
  let dawn: { create(flags: string[]): GPU; globals: object };
  try {
    dawn = (await import("webgpu")) as never;
  } catch (error) {
    throw explainImport(error);
  }
  for (const [name, value] of Object.entries(dawn.globals)) (globalThis as Record<string, unknown>)[name] ??= value;
  // Disables the rounding of timestamps, which protects users of web pages but is coarser than most kernel durations.
  const gpu = dawn.create([
    "enable-dawn-features=allow_unsafe_apis",
    "disable-dawn-features=timestamp_quantization",
    ...flags,
  ]);
  brakes.set(gpu, new EventLoopBrake());
  return gpu;
};

/** Returns the cache folder of the user: `SKEIN_CACHE_DIR`, or by default the cache folder of the operating system. */
const cacheFolder = (): string => {
  const { env, platform } = process;
  if (env["SKEIN_CACHE_DIR"]) return env["SKEIN_CACHE_DIR"];
  if (platform === "win32" && env["LOCALAPPDATA"]) return join(env["LOCALAPPDATA"], "skein");
  if (platform === "darwin") return join(homedir(), "Library", "Caches", "skein");
  return join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "skein");
};

/**
 * Creates a store of measured models in files, one JSON file per adapter. A file is replaced atomically, so that
 * several processes can read and write concurrently.
 *
 * @param folder Folder of the files. Default: `SKEIN_CACHE_DIR`, or `skein` in the user's cache folder.
 * @example
 * ```ts
 * const store = fileChoiceStore("choices");
 * console.log(await store.load("an adapter")); // undefined
 * ```
 */
export const fileChoiceStore = (folder: string = cacheFolder()): ChoiceStore => {
  const pathOf = (adapter: string): string => join(folder, `${storeKey(adapter)}.json`);
  return {
    load: async (adapter) => {
      const fault = otherWriters(pathOf(adapter));
      if (fault !== undefined) {
        warnAboutCache(`measurements of the adapter in ${folder}`, fault);
        return undefined;
      }
      let text: string;
      try {
        text = await readFile(pathOf(adapter), "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw error;
      }
      return readMatmulModel(text);
    },
    save: async (model) => {
      if (otherWriters(folder) !== undefined) return; // other users can write, so the file would never be read
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const path = pathOf(model.adapter);
      const unfinished = `${path}.${process.pid}.tmp`;
      await writeFile(unfinished, `${JSON.stringify(model)}\n`);
      await rename(unfinished, path);
    },
  };
};
