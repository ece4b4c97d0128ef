import type { HardwareFile } from "../hardware.ts";
import { dataSheetGpu, hostOfGpus } from "./data-sheet-host.ts";

/** V100. This GPU does not support bf16. */
const device = dataSheetGpu({
  name: "NVIDIA V100 SXM2 32 GB",
  source: "NVIDIA, V100 data sheet, 2020",
  flopsPerSecond: { f32: 15.7e12, f16: 125e12 },
  memoryBytesPerSecond: 900e9,
  memoryGibibytes: 32,
});

export const v100: HardwareFile = hostOfGpus({
  name: "v100",
  description: "8 × V100 32 GB with NVLink, from data sheets",
  device,
  gpus: 8,
  interconnect: {
    kind: "NVLink",
    bytesPerSecond: 150e9,
    source: "NVIDIA, V100 data sheet: NVLink 300 GB/s both ways",
  },
  network: { bytesPerSecond: 50e9, source: "NVIDIA, DGX-1 data sheet: four adapters of 100 Gbit/s" },
});
