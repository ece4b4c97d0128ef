import type { HardwareFile } from "../hardware.ts";
import { ga100Peaks } from "./a100-sxm.ts";
import { dataSheetGpu, hostOfGpus } from "./data-sheet-host.ts";

const device = dataSheetGpu({
  name: "NVIDIA A800 SXM4 80 GB",
  source: "NVIDIA, A800 80GB data sheet, 2022: an A100 80GB but for its links",
  flopsPerSecond: ga100Peaks,
  memoryBytesPerSecond: 2.039e12,
  memoryGibibytes: 80,
});

/**
 * 8 × A800: the first platform of Zhang et al. 2023, Dissecting the Runtime Performance of the Training, Fine-tuning,
 * and Inference of Large Language Models.
 */
export const a800: HardwareFile = hostOfGpus({
  name: "a800",
  description: "8 × A800 80 GB with NVLink, from data sheets",
  device,
  gpus: 8,
  interconnect: {
    kind: "NVLink",
    bytesPerSecond: 200e9,
    source: "NVIDIA, A800 data sheet: NVLink 400 GB/s both ways",
  },
});
