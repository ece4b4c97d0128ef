import type { ComputeDevice } from "../src/hardware/hardware.ts";

/** For tests: returns a device with round numbers; `replaced` replaces some of its values. */
export const madeUpDevice = (replaced: Partial<ComputeDevice> = {}): ComputeDevice => ({
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
