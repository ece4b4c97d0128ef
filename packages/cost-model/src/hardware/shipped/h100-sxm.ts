import type { HardwareFile } from "../hardware.ts";
import { dataSheetGpu, hostOfGpus } from "./data-sheet-host.ts";

const device = dataSheetGpu({
  name: "NVIDIA H100 SXM5 80 GB",
  source: "NVIDIA, H100 Tensor Core GPU Architecture, 2022, table 2, and the product's data sheet",
  flopsPerSecond: { f32: 66.9e12, tf32: 494.7e12, f16: 989.4e12, bf16: 989.4e12, f8: 1978.9e12, i8: 1978.9e12 },
  memoryBytesPerSecond: 3.35e12,
  memoryGibibytes: 80,
});

export const h100Sxm: HardwareFile = hostOfGpus({
  name: "h100-sxm",
  description: "8 × H100 80 GB with NVLink, from data sheets",
  device,
  gpus: 8,
  interconnect: {
    kind: "NVLink",
    bytesPerSecond: 450e9,
    source: "NVIDIA, H100 data sheet: NVLink 900 GB/s both ways",
  },
  network: { bytesPerSecond: 400e9, source: "NVIDIA, DGX H100 data sheet: eight adapters of 400 Gbit/s" },
});
