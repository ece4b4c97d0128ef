import type { Device } from "../src/hardware/hardware.ts";

/** For tests: a device with round numbers, some of which can be replaced. */
export const madeUpDevice = (replaced: Partial<Device> = {}): Device => ({
  name: "device",
  kind: "cpu",
  source: "made up",
  flopsPerSecond: { f32: 1e9 },
  memoryBytesPerSecond: 1e9,
  memoryBytes: 1e9,
  kernelStartSeconds: 1e-6,
  assumedEfficiency: 0.5,
  efficiencies: [],
  ...replaced,
});
