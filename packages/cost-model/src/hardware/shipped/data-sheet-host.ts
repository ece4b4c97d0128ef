import type { LinkTimes } from "@skein/collectives";
import type { ComputeDevice, HardwareFile } from "../hardware.ts";

/** Data sheet values of a GPU. Flops are for dense products (no sparsity) that accumulate in f32. */
export interface GpuDataSheet
  extends Pick<ComputeDevice, "name" | "source" | "flopsPerSecond" | "memoryBytesPerSecond"> {
  readonly memoryGibibytes: number;
}

/**
 * Launch overhead of a queued kernel, in seconds. The source measured 3.8 µs per kernel that runs 2.9 µs on a V100:
 * Gray 2019, *Getting Started with CUDA Graphs*, NVIDIA's developer blog.
 */
const kernelStartSeconds = 0.9e-6;

/**
 * Efficiency assumed for kernels without measurements, because no kernel reaches the peak rates of the data sheet.
 * Training steps of the largest GPT models reach 52 % of an A100's peak, including communication and all operators
 * (Narayanan et al. 2021, arXiv 2104.04473, abstract). A single kernel must reach more.
 */
const assumedEfficiency = 0.6;

/** Builds a device description from the data sheet of a GPU. */
export const dataSheetGpu = ({ memoryGibibytes, ...sheet }: GpuDataSheet): ComputeDevice => ({
  kind: "gpu",
  ...sheet,
  memoryBytes: memoryGibibytes * 2 ** 30,
  kernelStartSeconds,
  assumedEfficiency,
  efficiencies: [],
});

/** Interconnect between the GPUs of a host. */
export interface HostInterconnect {
  readonly kind: "NVLink" | "PCIe";
  /** Bandwidth of one GPU in one direction, in bytes per second, from its data sheet. */
  readonly bytesPerSecond: number;
  readonly source: string;
}

/** Assumed payload bandwidth, as a fraction of the data sheet's bandwidth. */
const payloadShare = 0.8;

/**
 * Seconds per step of a ring with NCCL's Simple protocol, by type of link: `hwLat` in src/graph/tuning.cc of
 * github.com/NVIDIA/nccl.
 */
const secondsPerMessage = { NVLink: 3.4e-6, PCIe: 5.7e-6, network: 14e-6 };

/** Network of a host. */
export interface HostNetwork {
  readonly bytesPerSecond: number;
  readonly source: string;
}

const timesOf = (kind: keyof typeof secondsPerMessage, bytesPerSecond: number): LinkTimes => ({
  secondsPerMessage: secondsPerMessage[kind],
  secondsPerByte: 1 / (payloadShare * bytesPerSecond),
});

/** Returns the seconds per byte of a sum, which reads two operands and writes one result. */
export const gpuReduceSecondsPerByte = ({
  memoryBytesPerSecond,
}: Pick<ComputeDevice, "memoryBytesPerSecond">): number => 3 / memoryBytesPerSecond;

/** A host with several GPUs of one model. */
export interface GpuHost {
  readonly name: string;
  readonly description: string;
  readonly device: ComputeDevice;
  readonly gpus: number;
  readonly interconnect: HostInterconnect;
  /**
   * Network of the vendor's server, for topologies with several hosts. Absent: links between hosts get the same costs
   * as links within a host.
   */
  readonly network?: HostNetwork;
}

/** Builds a hardware file for one host with several equal GPUs. */
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
