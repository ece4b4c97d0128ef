import type { HardwareFile } from "../hardware.ts";
import { dataSheetGpu, hostOfGpus } from "./data-sheet-host.ts";

const device = dataSheetGpu({
  name: "NVIDIA GeForce RTX 4090",
  source: "NVIDIA, Ada GPU Architecture, 2022, appendix A, table 2; products that add up in f32",
  flopsPerSecond: {
    f32: 82.6e12,
    tf32: 82.6e12,
    f16: 165.2e12,
    bf16: 165.2e12,
    f8: 330.3e12,
    i8: 660.6e12,
    i4: 1321.2e12,
  },
  memoryBytesPerSecond: 1.008e12,
  memoryGibibytes: 24,
});

/**
 * 8 × RTX 4090: the second platform of Zhang et al. 2023 (the source of `a800`). The PCIe bridges that the GPUs of a
 * host share are not modeled.
 */
export const rtx4090: HardwareFile = hostOfGpus({
  name: "rtx-4090",
  description: "8 × RTX 4090 on PCIe 4.0 ×16, from data sheets",
  device,
  gpus: 8,
  interconnect: {
    kind: "PCIe",
    bytesPerSecond: 32e9,
    source: "PCI-SIG: PCIe 4.0 ×16 has 32 GB/s one way",
  },
});
