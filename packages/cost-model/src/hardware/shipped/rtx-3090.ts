import type { HardwareFile } from "../hardware.ts";
import { dataSheetGpu, hostOfGpus } from "./data-sheet-host.ts";

const device = dataSheetGpu({
  name: "NVIDIA GeForce RTX 3090",
  source: "NVIDIA, Ampere GA102 GPU Architecture, 2021, appendix A, table 9; products that add up in f32",
  flopsPerSecond: { f32: 35.6e12, tf32: 35.6e12, f16: 71e12, bf16: 71e12, i8: 284e12, i4: 568e12 },
  memoryBytesPerSecond: 936e9,
  memoryGibibytes: 24,
});

/**
 * 8 × RTX 3090: the third platform of Zhang et al. 2023 (the source of `a800`). NVLink only connects pairs, so rings
 * over eight GPUs run at the speed of PCIe.
 */
export const rtx3090: HardwareFile = hostOfGpus({
  name: "rtx-3090",
  description: "8 × RTX 3090 on PCIe 4.0 ×16, from data sheets",
  device,
  gpus: 8,
  interconnect: {
    kind: "PCIe",
    bytesPerSecond: 32e9,
    source: "PCI-SIG: PCIe 4.0 ×16 has 32 GB/s one way",
  },
});
