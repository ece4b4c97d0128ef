import { ArgumentError } from "@skein/tensor-core";
import type { HardwareFile } from "../hardware.ts";
import { a100Sxm } from "./a100-sxm.ts";
import { a800 } from "./a800.ts";
import { h100Sxm } from "./h100-sxm.ts";
import { hkbu2080Ti100GbE, hkbu2080Ti100GbIb, hkbu2080Ti10GbE } from "./hkbu-2080-ti.ts";
import { laptopCpu } from "./laptop-cpu.ts";
import { rtx2080Ti } from "./rtx-2080-ti.ts";
import { rtx3090 } from "./rtx-3090.ts";
import { rtx4090 } from "./rtx-4090.ts";
import { v100 } from "./v100.ts";

/**
 * Hardware descriptions shipped with the package: a laptop from measurements of this project, GPUs from their data
 * sheets, clusters from papers.
 */
export const shippedHardware: readonly HardwareFile[] = [
  laptopCpu,
  h100Sxm,
  a100Sxm,
  a800,
  v100,
  rtx4090,
  rtx3090,
  rtx2080Ti,
  hkbu2080Ti10GbE,
  hkbu2080Ti100GbIb,
  hkbu2080Ti100GbE,
];

/**
 * Finds shipped hardware by name.
 *
 * @throws ArgumentError that lists the known names, if the name is unknown.
 * @example
 * ```ts
 * console.log(hardwareNamed("v100").device.kind); // gpu
 * ```
 */
export const hardwareNamed = (name: string): HardwareFile => {
  const found = shippedHardware.find((file) => file.name === name);
  if (found === undefined)
    throw new ArgumentError(
      `no hardware is named "${name}"; use one of ${shippedHardware.map(({ name }) => name).join(", ")}, or a file`,
    );
  return found;
};
