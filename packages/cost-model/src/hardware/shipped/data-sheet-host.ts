import type { LinkTimes } from "@skein/collectives";
import type { Device, HardwareFile } from "../hardware.ts";

/** What a data sheet says of a GPU. Flops are dense, without sparsity, and of products that add up in f32. */
export interface GpuDataSheet extends Pick<Device, "name" | "source" | "flopsPerSecond" | "memoryBytesPerSecond"> {
  readonly memoryGibibytes: number;
}

/**
 * What a kernel takes beside its work where one is queued behind the other: 3.8 µs for each of 2.9 µs, on a V100.
 * Source: Gray 2019, *Getting Started with CUDA Graphs*, NVIDIA's developer blog.
 */
const kernelStartSeconds = 0.9e-6;

/**
 * Nothing was measured here, and no kernel reaches its data sheet. Whole training steps of GPT models are published at 44 to 52 % of an A100's peak, what
 * is no product included (Narayanan et al. 2021, arXiv 2104.04473, table 1); 60 % for each kernel by itself gives about that.
 */
const assumedEfficiency = 0.6;

/** Describe a GPU by its data sheet. */
export const dataSheetGpu = ({ memoryGibibytes, ...sheet }: GpuDataSheet): Device => ({
  kind: "gpu",
  ...sheet,
  memoryBytes: memoryGibibytes * 2 ** 30,
  kernelStartSeconds,
  assumedEfficiency,
  efficiencies: [],
});

/** How GPUs of a host reach one another. */
export interface HostInterconnect {
  readonly kind: "NVLink" | "PCIe";
  /** One way, of one GPU, by its data sheet. */
  readonly bytesPerSecond: number;
  readonly source: string;
}

/** Of the data sheet's bandwidth, what is assumed to arrive as payload. */
const payloadShare = 0.8;

/** A step of a ring with whole buffers, as NCCL's own choice of algorithms has it (`hwLat` in src/graph/tuning.cc, v2.18). */
const secondsPerMessage = { NVLink: 3.4e-6, PCIe: 5.7e-6 };

/** Messages between GPUs of a host. */
export const interconnectTimes = ({ kind, bytesPerSecond }: HostInterconnect): LinkTimes => ({
  secondsPerMessage: secondsPerMessage[kind],
  secondsPerByte: 1 / (payloadShare * bytesPerSecond),
});

/** A sum reads two operands and writes one. */
export const gpuReduceSecondsPerByte = ({ memoryBytesPerSecond }: Pick<Device, "memoryBytesPerSecond">): number => 3 / memoryBytesPerSecond;

/** Describe one host of equal GPUs. Links between hosts, which it does not have, stand as those within. */
export const hostOfGpus = (
  name: string,
  description: string,
  device: Device,
  gpus: number,
  interconnect: HostInterconnect,
): HardwareFile => {
  const within = interconnectTimes(interconnect);
  return {
    format: "skein-hardware",
    version: 1,
    name,
    description,
    device,
    topology: { ranks: gpus, ranksPerHost: gpus },
    links: {
      within,
      across: within,
      reduceSecondsPerByte: gpuReduceSecondsPerByte(device),
      source: `${interconnect.source}; ${payloadShare * 100} % of it assumed as payload; start of a message: NCCL 2.18's model of a ring`,
      contention: { penaltyPerFlow: 0 },
    },
  };
};
