import { readdirSync } from "node:fs";

/**
 * Device files of GPUs on Linux, by folder: of the drivers of Mesa, NVIDIA, Windows (WSL), Mali, Adreno, Tegra and
 * PowerVR.
 */
const deviceFiles: Readonly<Record<string, RegExp>> = {
  "/dev/dri": /^renderD\d+$/,
  "/dev": /^(nvidia\d+|dxg|mali\d*|kgsl-3d\d+|nvhost-gpu|nvgpu|nvmap|pvr.*)$/,
};

/** Names in a folder; an empty list if the folder does not exist. */
const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/**
 * Whether this machine may have a GPU, determined without loading a driver. A WebGPU request loads all drivers: this
 * takes a second, and Mesa's software adapter, which would not be chosen, makes Dawn print warnings that cannot be
 * turned off.
 */
export const mayHaveGpu = (
  platform: string = process.platform,
  list: (folder: string) => readonly string[] = namesIn,
): boolean =>
  platform !== "linux" ||
  Object.entries(deviceFiles).some(([folder, name]) => list(folder).some((file) => name.test(file)));
