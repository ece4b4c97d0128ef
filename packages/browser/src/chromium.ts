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
 * Where Chromium lies on this machine: what CHROMIUM_PATH says, or the first of the usual names in the folders of PATH
 * and `/usr/bin`.
 *
 * @returns undefined where there is none.
 * @throws Error when CHROMIUM_PATH names no file: a wish that cannot be met is no reason to take another browser.
 */
export const findChromium = (env: Readonly<Record<string, string | undefined>> = process.env): string | undefined => {
  const wished = env["CHROMIUM_PATH"];
  if (wished !== undefined && wished !== "") {
    if (!existsSync(wished))
      throw new Error(`CHROMIUM_PATH is ${wished}, but there is no such file; name Chromium's program, or unset it`);
    return wished;
  }
  const folders = [...(env["PATH"] ?? "").split(delimiter), "/usr/bin"].filter((folder) => folder !== "");
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable);
};

export interface ChromiumOptions {
  /**
   * `best`: the machine's GPU, and where it has none SwiftShader, the Vulkan driver on the processor that Chromium
   * brings along. `software`: SwiftShader in any case. Default: `best`.
   */
  readonly adapter?: "best" | "software";
  /** Further flags of Chromium. */
  readonly flags?: readonly string[];
}

/**
 * Chromium keeps WebGPU off on Linux drivers that it does not know, and off all drivers on processors, unless told so.
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
 * Start a headless Chromium with WebGPU. Close it when done.
 *
 * @throws Error where `findChromium` finds none.
 */
export const openChromium = async ({ adapter = "best", flags = [] }: ChromiumOptions = {}): Promise<Browser> => {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("Chromium was not found; install it (Debian: apt-get install chromium) or set CHROMIUM_PATH");
  return chromium.launch({
    executablePath,
    headless: true,
    // Its own sandbox needs user namespaces, which containers rarely give; all pages here are ours.
    chromiumSandbox: false,
    args: [...adapterFlags[adapter], ...flags],
  });
};
