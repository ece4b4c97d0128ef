import type { ComputeType, Device } from "./hardware.ts";

/** Work of one kernel. Bytes are those that go through the device's memory, read and written. */
export interface Work {
  readonly flops: number;
  readonly bytes: number;
}

/** What a kernel takes, and what holds it up. */
export interface Roofline {
  /** The longer of both, without the start. */
  readonly seconds: number;
  readonly boundBy: "flops" | "bytes";
}

/** Peak of a device for products of operands of a type; of f32 where the device names no other. */
export const peakFlops = ({ flopsPerSecond }: Device, type: ComputeType): number =>
  flopsPerSecond[type] ?? flopsPerSecond.f32;

/**
 * The least time that a device could take for some work: max(flops / peak, bytes / bandwidth).
 *
 * Source: Williams, Waterman and Patterson, *Roofline*, CACM 52, 2009.
 */
export const roofline = (device: Device, { flops, bytes }: Work, type: ComputeType = "f32"): Roofline => {
  const [computing, moving] = [flops / peakFlops(device, type), bytes / device.memoryBytesPerSecond];
  return computing > moving ? { seconds: computing, boundBy: "flops" } : { seconds: moving, boundBy: "bytes" };
};
