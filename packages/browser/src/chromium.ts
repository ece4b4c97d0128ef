import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/**
 * Finds Chromium on this machine: the file at the path in CHROMIUM_PATH, or the first file with one of Chromium's usual
 * names in the folders of PATH and in `/usr/bin`.
 *
 * @returns path of Chromium; undefined if Chromium was not found.
 * @throws Error if CHROMIUM_PATH is not an existing file, instead of choosing another browser.
 */
export const findChromium = (env: Readonly<Record<string, string | undefined>> = process.env): string | undefined => {
  const wished = env["CHROMIUM_PATH"];
  if (wished !== undefined && wished !== "") {
    if (!existsSync(wished))
      throw new Error(
        `CHROMIUM_PATH is ${wished}, but there is no such file; set it to the path of Chromium, or unset it`,
      );
    return wished;
  }
  const folders = [...(env["PATH"] ?? "").split(delimiter), "/usr/bin"].filter((folder) => folder !== "");
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable);
};

export interface ChromiumOptions {
  /**
   * WebGPU adapter. `best`: the GPU of the machine, or, without a GPU, SwiftShader, Chromium's Vulkan driver for CPUs.
   * `software`: always SwiftShader. Default: `best`.
   */
  readonly adapter?: "best" | "software";
  /** Additional command-line flags of Chromium. */
  readonly flags?: readonly string[];
}

/**
 * Command-line flags by adapter. By default, Chromium disables WebGPU on unknown Linux drivers and on all CPU drivers.
 */
const adapterFlags: Readonly<Record<NonNullable<ChromiumOptions["adapter"]>, readonly string[]>> = {
  best: [
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    "--use-angle=vulkan",
    "--disable-vulkan-surface",
    "--ignore-gpu-blocklist",
  ],
  software: ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"],
};

/**
 * Starts a headless Chromium with WebGPU. The caller must close the browser.
 *
 * @throws Error if `findChromium` does not find Chromium.
 */
export const openChromium = async ({ adapter = "best", flags = [] }: ChromiumOptions = {}): Promise<Browser> => {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("Chromium was not found; install it (Debian: apt-get install chromium) or set CHROMIUM_PATH");
  return chromium.launch({
    executablePath,
    headless: true,
    // Chromium's sandbox needs user namespaces, which containers rarely allow. The sandbox is not needed, because only
    // this project's pages are loaded.
    chromiumSandbox: false,
    args: [...adapterFlags[adapter], ...flags],
  });
};
