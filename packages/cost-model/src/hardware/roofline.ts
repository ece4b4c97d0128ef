import type { ComputeType, ComputeDevice } from "./hardware.ts";

/** Work of one kernel. Bytes are reads from and writes to the device's memory. */
export interface Work {
  readonly flops: number;
  readonly bytes: number;
}

/** Roofline time of a kernel, and whether arithmetic or memory limits it. */
export interface Roofline {
  /** Maximum of the arithmetic time and the memory time, without the kernel's launch time. */
  readonly seconds: number;
  readonly boundBy: "flops" | "bytes";
}

/**
 * Returns a device's peak rate in flops per second for matrix products of a type. If the device has no entry for the
 * type, returns the f32 peak.
 */
export const peakFlops = ({ flopsPerSecond }: ComputeDevice, type: ComputeType): number =>
  flopsPerSecond[type] ?? flopsPerSecond.f32;

/**
 * Computes the shortest possible time for an amount of work on a device: max(flops / peak, bytes / bandwidth).
 *
 * @example
 * ```ts
 * const { device } = shippedHardware[0]!;
 * console.log(roofline(device, { flops: 1, bytes: 1e9 }).boundBy); // bytes
 * ```
 * Source: Williams, Waterman and Patterson, *Roofline*, CACM 52, 2009.
 */
export const roofline = (device: ComputeDevice, { flops, bytes }: Work, type: ComputeType = "f32"): Roofline => {
  const [computing, moving] = [flops / peakFlops(device, type), bytes / device.memoryBytesPerSecond];
  return computing > moving ? { seconds: computing, boundBy: "flops" } : { seconds: moving, boundBy: "bytes" };
};
