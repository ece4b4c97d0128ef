import type { LinkCosts, LinkTimes } from "@skein/collectives";
import type { NetworkGrowth } from "../network-growth.ts";

/** Data type of matrix product operands. `i4` and `i8` are for quantized weights. */
export type ComputeType = "f32" | "tf32" | "f16" | "bf16" | "f8" | "i8" | "i4";

/** Linear fit of measured or published transfer times: seconds = startupSeconds + secondsPerByte · bytes. */
export interface TransferTimes {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** Measured efficiency of one operator, relative to the roofline, for calls with about the same amount of work. */
export interface MeasuredEfficiency {
  readonly operator: string;
  /** Flops of one call: geometric mean over the measured calls. */
  readonly flops: number;
  readonly bytes: number;
  /**
   * Roofline seconds divided by measured seconds without the kernel's launch time. 1 is the roofline; more than 1 is
   * possible if a cache contains the operands.
   */
  readonly efficiency: number;
  /**
   * Half width of the 95 % confidence interval of the mean, divided by the mean. Absent if there is only one sample.
   */
  readonly relativeError?: number | undefined;
  readonly samples: number;
}

/** Measured costs of a training step on one rank, in addition to its kernels and messages. */
export interface RunningCosts {
  /** Seconds per step that a rank spends on batches, metrics, and gaps between kernels. */
  readonly secondsPerStep: number;
  /** Seconds that the computing thread of a rank needs to start one collective. */
  readonly secondsPerCollective: number;
  /**
   * Latency of a collective in addition to its messages: handover to the communication thread and back, and the
   * communication thread's own work for each collective.
   */
  readonly collectiveLatencySeconds: number;
  /**
   * Computation seconds that a rank loses per byte sent during computation, because communication threads without
   * separate cores use the cores of the ranks.
   */
  readonly secondsPerByteBeside: number;
  /**
   * Relative slowdown of a kernel during a collective, in addition to the cost per byte of the collective, because
   * caches, memory bandwidth and cores are shared. Absent: 0.
   */
  readonly overlapSlowdown?: number | undefined;
  /** Coefficient of variation of a rank's computation time per step. The other ranks wait for the slowest rank. */
  readonly stepVariation: number;
  /**
   * Extra seconds per message while its sender or receiver computes, because communication threads wait for a free
   * core.
   */
  readonly messageDelaySeconds: number;
}

/** Description of the device on which one rank computes. */
export interface ComputeDevice {
  readonly name: string;
  readonly kind: "cpu" | "gpu";
  /** Source of the device's values: a data sheet, or a measurement with its date. */
  readonly source: string;
  /**
   * Peak rates of dense matrix products in flops per second, by operand type. The `f32` rate is used for types without
   * an entry, and for all other operators.
   */
  readonly flopsPerSecond: { readonly f32: number } & { readonly [type in ComputeType]?: number | undefined };
  readonly memoryBytesPerSecond: number;
  readonly memoryBytes: number;
  /** Seconds to launch a kernel, in addition to the time of its work. */
  readonly kernelStartSeconds: number;
  /**
   * Times of transfers between the device's memory and the host that sends messages. Absent: collectives access the
   * device's memory directly.
   */
  readonly readBack?: TransferTimes | undefined;
  /**
   * Efficiency assumed for operators without measurements, as a fraction of the roofline. 1 means the values of the
   * data sheet, which no kernel reaches.
   */
  readonly assumedEfficiency: number;
  readonly efficiencies: readonly MeasuredEfficiency[];
  /**
   * Costs in addition to kernels and messages, fitted to measured steps. Absent: a step consists of kernels and
   * messages only, and takes equally long on all ranks.
   */
  readonly running?: RunningCosts | undefined;
}

/** Placement of ranks on hosts: rank r on host ⌊r / ranksPerHost⌋, host h in rack ⌊h / hostsPerRack⌋. */
export interface Topology {
  readonly ranks: number;
  readonly ranksPerHost: number;
  readonly hostsPerRack?: number | undefined;
}

/**
 * Contention between concurrent flows on one link: each of k flows takes k · b + (k − 1) · η seconds per byte, where b
 * is the time per byte of a single flow (arXiv 2002.10105).
 */
export interface Contention {
  /** η / b: penalty per additional flow, relative to the time per byte of a single flow. */
  readonly penaltyPerFlow: number;
}

/** Costs of the links of a cluster. */
export interface ClusterLinks extends LinkCosts {
  readonly source: string;
  /** Times of links between hosts in different racks. Absent: the topology has no racks. */
  readonly betweenRacks?: LinkTimes | undefined;
  /**
   * Growth of seconds per byte, between hosts and between racks, with the number of hosts in a group. Absent: no
   * growth. `fitNetworkGrowth` fits the growth to links measured with several host counts.
   */
  readonly growth?: NetworkGrowth | undefined;
  readonly contention: Contention;
}

/** A calibration run: a job with its measured and predicted step time. */
export interface CalibratedRun {
  readonly name: string;
  /** Whether collectives run concurrently with the job's computation. */
  readonly overlaps: boolean;
  readonly measuredSeconds: number;
  readonly predictedSeconds: number;
  /**
   * Spread of the median step times over the rounds: (largest − smallest) / median. Absent: only one round was
   * measured.
   */
  readonly spread?: number | undefined;
}

/** Runs of jobs with which a hardware file was calibrated. */
export interface HardwareCalibration {
  /** Value of `links.source` at the time of calibration. Measured steps are not valid for other links. */
  readonly links: string;
  /** Calibration runs, each on `topology.ranks` ranks. */
  readonly runs: readonly CalibratedRun[];
}

/** Description of a machine or a cluster, as `skein-profile` reads and writes it. */
export interface HardwareFile {
  readonly format: "skein-hardware";
  readonly version: 1;
  readonly name: string;
  readonly description: string;
  readonly device: ComputeDevice;
  readonly topology: Topology;
  readonly links: ClusterLinks;
  /** Calibration runs and prediction errors. Absent: the file was not calibrated with jobs. */
  readonly calibration?: HardwareCalibration | undefined;
}
