import type { HardwareFile } from "../hardware.ts";
import { dataSheetGpu, hostOfGpus } from "./data-sheet-host.ts";

/** Peak rates in flops per second, equal for the A100 and the A800. */
export const ga100Peaks = { f32: 19.5e12, tf32: 156e12, f16: 312e12, bf16: 312e12, i8: 624e12, i4: 1248e12 } as const;

const device = dataSheetGpu({
  name: "NVIDIA A100 SXM4 80 GB",
  source: "NVIDIA, A100 80GB data sheet, 2021 (nvidia-a100-datasheet-us-nvidia-1758950)",
  flopsPerSecond: ga100Peaks,
  memoryBytesPerSecond: 2.039e12,
  memoryGibibytes: 80,
});

export const a100Sxm: HardwareFile = hostOfGpus({
  name: "a100-sxm",
  description: "8 × A100 80 GB with NVLink, from data sheets",
  device,
  gpus: 8,
  interconnect: {
    kind: "NVLink",
    bytesPerSecond: 300e9,
    source: "NVIDIA, A100 data sheet: NVLink 600 GB/s both ways",
  },
  network: { bytesPerSecond: 200e9, source: "NVIDIA, DGX A100 data sheet: eight adapters of 200 Gbit/s" },
});
