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
 * Nothing was measured here, and no kernel reaches its data sheet. Whole training steps of the largest GPT models, what
 * is no product and communication included, are published at 52 % of the peak of A100s (Narayanan et al. 2021, arXiv
 * 2104.04473, abstract); each kernel by itself must reach more.
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

/**
 * A step of a ring with whole buffers, as NCCL's own choice of algorithms has it (`hwLat` in src/graph/tuning.cc of
 * github.com/NVIDIA/nccl).
 */
const secondsPerMessage = { NVLink: 3.4e-6, PCIe: 5.7e-6, network: 14e-6 };

/** What a host sends to others with: all its network adapters together, one way. */
export interface HostNetwork {
  readonly bytesPerSecond: number;
  readonly source: string;
}

const timesOf = (kind: keyof typeof secondsPerMessage, bytesPerSecond: number): LinkTimes => ({
  secondsPerMessage: secondsPerMessage[kind],
  secondsPerByte: 1 / (payloadShare * bytesPerSecond),
});

/** A sum reads two operands and writes one. */
export const gpuReduceSecondsPerByte = ({ memoryBytesPerSecond }: Pick<Device, "memoryBytesPerSecond">): number =>
  3 / memoryBytesPerSecond;

/** A host of equal GPUs. */
export interface GpuHost {
  readonly name: string;
  readonly description: string;
  readonly device: Device;
  readonly gpus: number;
  readonly interconnect: HostInterconnect;
  /**
   * Of the vendor's own server; several hosts are described by another topology. Absent where there is none: links
   * between hosts stand as those within.
   */
  readonly network?: HostNetwork;
}

/** Describe one host of equal GPUs. */
export const hostOfGpus = ({ name, description, device, gpus, interconnect, network }: GpuHost): HardwareFile => {
  const within = timesOf(interconnect.kind, interconnect.bytesPerSecond);
  const between =
    network === undefined ? "links between hosts, of which there is one, stand as those within" : network.source;
  return {
    format: "skein-hardware",
    version: 1,
    name,
    description,
    device,
    topology: { ranks: gpus, ranksPerHost: gpus },
    links: {
      within,
      across: network === undefined ? within : timesOf("network", network.bytesPerSecond),
      reduceSecondsPerByte: gpuReduceSecondsPerByte(device),
      source: `${interconnect.source}; ${between}; ${payloadShare * 100} % of that assumed as payload; start of a message: NCCL's model of a ring; contention not measured`,
      contention: { penaltyPerFlow: 0 },
    },
  };
};
