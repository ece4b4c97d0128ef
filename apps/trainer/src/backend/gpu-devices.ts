import { readdirSync } from "node:fs";

/**
 * Files by which Linux offers a GPU to programs, by folder: of Mesa's drivers and NVIDIA's, under Windows, of Mali,
 * Adreno, Tegra and PowerVR.
 */
const deviceFiles: Readonly<Record<string, RegExp>> = {
  "/dev/dri": /^renderD\d+$/,
  "/dev": /^(nvidia\d+|dxg|mali\d*|kgsl-3d\d+|nvhost-gpu|nvgpu|nvmap|pvr.*)$/,
};

/** Names in a folder; none where there is no folder. */
const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/**
 * Whether this machine can have a GPU, told without loading a driver. To ask WebGPU is to load all of them: it takes a
 * second, and Mesa's software adapter, which would not be chosen anyway, makes Dawn print warnings that nothing turns
 * off.
 */
export const mayHaveGpu = (
  platform: string = process.platform,
  list: (folder: string) => readonly string[] = namesIn,
): boolean =>
  platform !== "linux" ||
  Object.entries(deviceFiles).some(([folder, name]) => list(folder).some((file) => name.test(file)));
