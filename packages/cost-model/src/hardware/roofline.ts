import type { ComputeType, Device } from "./hardware.ts";

/** Work of one kernel. Bytes count reads and writes of the device's memory. */
export interface Work {
  readonly flops: number;
  readonly bytes: number;
}

/** Roofline time of a kernel and its bound. */
export interface Roofline {
  /** Longer of the arithmetic time and the memory time, without the start of the kernel. */
  readonly seconds: number;
  readonly boundBy: "flops" | "bytes";
}

/** Peak rate of a device for matrix products of a type; the f32 peak if the device has none for this type. */
export const peakFlops = ({ flopsPerSecond }: Device, type: ComputeType): number =>
  flopsPerSecond[type] ?? flopsPerSecond.f32;

/**
 * Shortest possible time of a device for some work: max(flops / peak, bytes / bandwidth).
 *
 * Source: Williams, Waterman and Patterson, *Roofline*, CACM 52, 2009.
 */
export const roofline = (device: Device, { flops, bytes }: Work, type: ComputeType = "f32"): Roofline => {
  const [computing, moving] = [flops / peakFlops(device, type), bytes / device.memoryBytesPerSecond];
  return computing > moving ? { seconds: computing, boundBy: "flops" } : { seconds: moving, boundBy: "bytes" };
};
