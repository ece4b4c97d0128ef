import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const listed = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/**
 * Lists graphics cards from files in /proc and /sys, without calling a driver: by model name, or by vendor id and
 * device id.
 */
export const graphicsCards = (root = "/"): string[] => {
  const nvidia = join(root, "proc/driver/nvidia/gpus");
  const named = listed(nvidia).flatMap((card) => {
    const model = /^Model:\s*(.+)$/m.exec(read(join(nvidia, card, "information")) ?? "")?.[1];
    return model === undefined ? [] : [model.trim()];
  });
  const drm = join(root, "sys/class/drm");
  const numbered = listed(drm)
    .filter((name) => /^card\d+$/.test(name))
    .flatMap((card) => {
      const [vendor, device] = ["vendor", "device"].map((part) => read(join(drm, card, "device", part))?.trim());
      const isNamed = vendor === "0x10de" && named.length > 0;
      return vendor === undefined || device === undefined || isNamed ? [] : [`PCI ${vendor}:${device}`];
    });
  return [...named, ...numbered];
};
