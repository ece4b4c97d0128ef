import type { LinkCosts, LinkTimes } from "@skein/collectives";
import type { NetworkGrowth } from "../network-growth.ts";

/** Data type of matrix product operands. `i4` and `i8` are for quantized weights. */
export type ComputeType = "f32" | "tf32" | "f16" | "bf16" | "f8" | "i8" | "i4";

/** Linear fit of measured or published transfer times: startupSeconds + secondsPerByte · bytes. */
export interface TransferTimes {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** Measured efficiency of one operator, relative to the roofline, at one size of work. */
export interface MeasuredEfficiency {
  readonly operator: string;
  /** Work of one call: geometric mean over the measured calls. */
  readonly flops: number;
  readonly bytes: number;
  /**
   * Roofline seconds divided by measured seconds without the start of the kernel. 1 is the roofline; more than 1 is
   * possible if a cache holds the operands.
   */
  readonly efficiency: number;
  /** Half width of the 95 % confidence interval of the mean, divided by the mean. Absent for a single sample. */
  readonly relativeError?: number | undefined;
  readonly samples: number;
}

/** Measured costs of a rank's step in addition to its kernels and messages. */
export interface RunningCosts {
  /** Seconds of a rank per step: batches, metrics, time between kernels. */
  readonly secondsPerStep: number;
  /** Seconds of the computing rank to start a collective. */
  readonly secondsPerCollective: number;
  /**
   * Latency of a collective in addition to its messages: handing over to the communicating thread and back, and the
   * thread's own work per collective.
   */
  readonly collectiveLatencySeconds: number;
  /**
   * Seconds that a sent byte takes from a rank that computes at the same time: threads that communicate without cores
   * of their own use the cores of the ranks.
   */
  readonly secondsPerByteBeside: number;
  /**
   * Relative slowdown of a kernel during a collective, in addition to the cost of its bytes, because caches, memory
   * bandwidth and cores are shared. Absent: 0.
   */
  readonly overlapSlowdown?: number | undefined;
  /** Coefficient of variation of a rank's computing time per step; the other ranks wait for the slowest. */
  readonly stepVariation: number;
  /**
   * Extra seconds of a message while its sender or receiver computes, because communicating threads wait for a core.
   */
  readonly messageDelaySeconds: number;
}

/** Device on which one rank computes. */
export interface Device {
  readonly name: string;
  readonly kind: "cpu" | "gpu";
  /** Source of the figures: a data sheet, or a measurement with its date. */
  readonly source: string;
  /**
   * Peak rates of dense matrix products, by operand type. `f32` replaces missing types, and is the peak for all other
   * operators.
   */
  readonly flopsPerSecond: { readonly f32: number } & { readonly [type in ComputeType]?: number | undefined };
  readonly memoryBytesPerSecond: number;
  readonly memoryBytes: number;
  /** Seconds to start a kernel, in addition to its work. */
  readonly kernelStartSeconds: number;
  /**
   * Transfer between the device's memory and the sending host. Absent: collectives access the device's memory directly.
   */
  readonly readBack?: TransferTimes | undefined;
  /**
   * Share of the roofline assumed for operators without measurements. 1 is the data sheet value, which no kernel
   * reaches.
   */
  readonly assumedEfficiency: number;
  readonly efficiencies: readonly MeasuredEfficiency[];
  /**
   * Costs beyond kernels and messages, fitted to measured steps. Absent: a step consists of kernels and messages only,
   * and all ranks take equally long.
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
 * Contention between concurrent flows: k flows take k · b + (k − 1) · η per byte each, with b of a single flow (arXiv
 * 2002.10105).
 */
export interface Contention {
  /** η / b. */
  readonly penaltyPerFlow: number;
}

/** The links of a cluster. */
export interface ClusterLinks extends LinkCosts {
  readonly source: string;
  /** Links between hosts of different racks, if the topology has racks. */
  readonly betweenRacks?: LinkTimes | undefined;
  /**
   * Growth of the seconds per byte between hosts, and between racks, with the number of hosts of a group. Absent: no
   * growth. `fitNetworkGrowth` fits the growth to links measured at several numbers of hosts.
   */
  readonly growth?: NetworkGrowth | undefined;
  readonly contention: Contention;
}

/** A job with which a hardware file was calibrated, and the error of the file's prediction. */
export interface CalibratedRun {
  readonly name: string;
  /** Whether collectives travel while the job computes. */
  readonly overlaps: boolean;
  readonly measuredSeconds: number;
  readonly predictedSeconds: number;
  /** Largest minus smallest median step of the rounds, as a share of their median. Absent: one round. */
  readonly spread?: number | undefined;
}

/** Jobs with which a hardware file was calibrated. */
export interface HardwareCalibration {
  /** `links.source` at the time of calibration, because measured steps are not valid for other links. */
  readonly links: string;
  /** Runs with `topology.ranks` ranks each. */
  readonly runs: readonly CalibratedRun[];
}

/** Description of a machine or a cluster, as `skein-profile` reads and writes it. */
export interface HardwareFile {
  readonly format: "skein-hardware";
  readonly version: 1;
  readonly name: string;
  readonly description: string;
  readonly device: Device;
  readonly topology: Topology;
  readonly links: ClusterLinks;
  /** Absent: the file was not calibrated with jobs. */
  readonly calibration?: HardwareCalibration | undefined;
}
