import type { LinkCosts, LinkTimes } from "@skein/collectives";
import type { NetworkGrowth } from "../network-growth.ts";

/** What operands of matrix products are stored as. `i4` and `i8` stand for quantized weights. */
export type ComputeType = "f32" | "tf32" | "f16" | "bf16" | "f8" | "i8" | "i4";

/** A line through measured or published times: startupSeconds + secondsPerByte · bytes. */
export interface TransferTimes {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** How much of the roofline one operator reaches, at work of about one size. */
export interface MeasuredEfficiency {
  readonly operator: string;
  /** Of one call: the geometric mean of those that were measured. */
  readonly flops: number;
  readonly bytes: number;
  /**
   * Roofline seconds over measured seconds, the start of a kernel left out: 1 is the roofline; more where a cache holds
   * the operands.
   */
  readonly efficiency: number;
  /** Half of the 95 % interval of the mean, over the mean; of one sample unknown. */
  readonly relativeError?: number | undefined;
  readonly samples: number;
}

/** What a rank's steps take beside its kernels and its messages, as steps have shown it. */
export interface RunningCosts {
  /** Of a rank in a step: samples, metrics, the way from kernel to kernel. */
  readonly secondsPerStep: number;
  /** What handing a collective over takes of the rank that computes. */
  readonly secondsPerCollective: number;
  /**
   * What a collective takes beside its messages: the way to the thread that communicates and back, and what that does
   * for each.
   */
  readonly collectiveLatencySeconds: number;
  /**
   * What a sent byte takes of a rank that computes meanwhile: where threads that communicate have no cores of their
   * own, they take those of the ranks.
   */
  readonly secondsPerByteBeside: number;
  /**
   * Share by which a kernel takes longer while a collective travels beside it, in addition to the cost of its bytes:
   * caches, memory bandwidth and cores are shared. Absent: 0.
   */
  readonly overlapSlowdown?: number | undefined;
  /** Coefficient of variation of what a rank computes in a step: others wait for the slowest. */
  readonly stepVariation: number;
  /** What a message takes longer while its sender or receiver computes: threads that communicate wait for a core. */
  readonly messageDelaySeconds: number;
}

/** What one rank computes on. */
export interface Device {
  readonly name: string;
  readonly kind: "cpu" | "gpu";
  /** Where the figures come from: a data sheet, or a measurement with its date. */
  readonly source: string;
  /** Peak of dense matrix products; `f32` stands for what is missing, and prices all that is no product. */
  readonly flopsPerSecond: { readonly f32: number } & { readonly [type in ComputeType]?: number | undefined };
  readonly memoryBytesPerSecond: number;
  readonly memoryBytes: number;
  /** What a kernel costs beside its work. */
  readonly kernelStartSeconds: number;
  /** Between the device's memory and what sends; absent where collectives read the device's memory itself. */
  readonly readBack?: TransferTimes | undefined;
  /**
   * Share of the roofline that is reached where nothing was measured. A data sheet promises 1, which no kernel reaches.
   */
  readonly assumedEfficiency: number;
  readonly efficiencies: readonly MeasuredEfficiency[];
  /**
   * Absent where no step was measured: a step is its kernels and messages, and every rank takes as long as the others.
   */
  readonly running?: RunningCosts | undefined;
}

/** How ranks lie on hosts: rank r on host ⌊r / ranksPerHost⌋, host h in rack ⌊h / hostsPerRack⌋. */
export interface Topology {
  readonly ranks: number;
  readonly ranksPerHost: number;
  readonly hostsPerRack?: number | undefined;
}

/**
 * What several flows at once cost each other: k of them take k · b + (k − 1) · η per byte each, with b of one alone
 * (arXiv 2002.10105).
 */
export interface Contention {
  /** η / b. */
  readonly penaltyPerFlow: number;
}

/** The links of a cluster. */
export interface ClusterLinks extends LinkCosts {
  readonly source: string;
  /** Between hosts of different racks, where the topology names racks. */
  readonly betweenRacks?: LinkTimes | undefined;
  /**
   * Growth of the seconds per byte between hosts, and between racks, with the number of hosts of a group. Absent: none.
   * `fitNetworkGrowth` fits it to links that were measured at several numbers of hosts.
   */
  readonly growth?: NetworkGrowth | undefined;
  readonly contention: Contention;
}

/** A job that a hardware file was calibrated with, and how well the file predicts it. */
export interface CalibratedRun {
  readonly name: string;
  /** Whether collectives travel while the job computes. */
  readonly overlaps: boolean;
  readonly measuredSeconds: number;
  readonly predictedSeconds: number;
  /** Largest less smallest median step of the rounds, as a share of their median. Absent: one round. */
  readonly spread?: number | undefined;
}

/** Jobs that a hardware file was calibrated with. */
export interface HardwareCalibration {
  /** `links.source` at that time: measured steps are no measurements of other links. */
  readonly links: string;
  /** Of `topology.ranks` ranks each. */
  readonly runs: readonly CalibratedRun[];
}

/** A machine or a cluster, as `skein-profile` reads and writes it. */
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
