import { readdirSync } from "node:fs";

/**
 * Patterns that match the names of GPU device files on Linux, by folder. Covers the drivers of Mesa, NVIDIA, Windows
 * (WSL), Mali, Adreno, Tegra and PowerVR.
 */
const deviceFiles: Readonly<Record<string, RegExp>> = {
  "/dev/dri": /^renderD\d+$/,
  "/dev": /^(nvidia\d+|dxg|mali\d*|kgsl-3d\d+|nvhost-gpu|nvgpu|nvmap|pvr.*)$/,
};

/** Returns the file names in a folder; an empty list if the folder does not exist. */
const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/**
 * Whether this machine may have a GPU, determined without loading a driver. A WebGPU request would take a second to
 * load all drivers. With Mesa's software adapter, which Skein never chooses, Dawn would also print warnings that cannot
 * be turned off.
 */
export const mayHaveGpu = (
  platform: string = process.platform,
  list: (folder: string) => readonly string[] = namesIn,
): boolean =>
  platform !== "linux" ||
  Object.entries(deviceFiles).some(([folder, name]) => list(folder).some((file) => name.test(file)));
