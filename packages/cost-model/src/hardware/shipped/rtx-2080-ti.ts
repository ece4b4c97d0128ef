import type { ComputeDevice, HardwareFile } from "../hardware.ts";
import { dataSheetGpu, hostOfGpus } from "./data-sheet-host.ts";

/** RTX 2080 Ti at the clock rate of the reference card. This GPU does not support bf16. */
export const rtx2080TiDevice: ComputeDevice = dataSheetGpu({
  name: "NVIDIA GeForce RTX 2080 Ti",
  source: "NVIDIA, Turing GPU Architecture, 2018, table 1; products that add up in f32",
  flopsPerSecond: { f32: 13.4e12, f16: 53.8e12, i8: 215.2e12, i4: 430.3e12 },
  memoryBytesPerSecond: 616e9,
  memoryGibibytes: 11,
});

export const rtx2080Ti: HardwareFile = hostOfGpus({
  name: "rtx-2080-ti",
  description: "4 × RTX 2080 Ti on PCIe 3.0 ×16, from data sheets",
  device: rtx2080TiDevice,
  gpus: 4,
  interconnect: {
    kind: "PCIe",
    bytesPerSecond: 15.75e9,
    source: "PCI-SIG: PCIe 3.0 ×16 has 15.75 GB/s one way",
  },
});
