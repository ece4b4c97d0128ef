import type { Phase, RankSpans } from "@skein/tensor-core";

/**
 * Phase of an operator in a step. `other`: kernels that are not nodes of the step's graph, such as a user's custom
 * shader.
 */
export type RowPhase = Phase | "other";

/** Statistics of a time that was measured in several steps, in seconds. */
export interface Times {
  readonly median: number;
  /** Median absolute deviation from the median, in seconds. */
  readonly mad: number;
  readonly n: number;
  /**
   * Effective number of independent samples, if the times of consecutive steps are correlated. Absent: equal to `n`.
   */
  readonly effectiveN?: number | undefined;
}

/**
 * One operator in one scope of the model, summed over its calls in a step.
 *
 * Operators are computations only. Collectives, and waits for collectives, have separate rows. Computation for
 * communication, such as packing or encoding a bucket, has the phase `communication`.
 */
export interface OperatorRow {
  readonly operator: string;
  /** Scope: path of the model part, such as `block-0/attention`, without a trailing `/backward`. */
  readonly scope: string;
  readonly phase: RowPhase;
  readonly calls: number;
  /** Time of all calls in a step on the slowest rank. */
  readonly seconds: Times;
  /** Share of the total time of all ranks, 0 to 1. The shares of all operators and of `outside` add up to 1. */
  readonly share: number;
  /**
   * Number of floating-point operations. Absent if the graph of the step is unknown, as in a report made from a trace
   * only.
   */
  readonly flops?: number | undefined;
  /** Bytes read and written. Absent if the graph of the step is unknown. */
  readonly bytes?: number | undefined;
  /**
   * Shortest possible time by the roofline of the device, in seconds. Absent if the device's peak rates are unknown.
   */
  readonly rooflineSeconds?: number | undefined;
  readonly boundBy?: "flops" | "bytes" | undefined;
  /** Time predicted by the cost model, in seconds. Absent if there is no prediction. */
  readonly predictedSeconds?: number | undefined;
}

/**
 * Time of a step outside operators, by kind.
 *
 * | kind | meaning |
 * | --- | --- |
 * | waiting | waiting for collectives: communication that computation does not hide |
 * | data | waiting for a batch |
 * | host | work of the rank's main thread, such as starting collectives or compiling |
 * | between | time without a span: between kernels, reading results, other programs on this core |
 */
export interface OutsideRow {
  readonly kind: "waiting" | "data" | "host" | "between";
  /** Time of this kind on the slowest rank. */
  readonly seconds: Times;
  /** Share of the total time of all ranks, 0 to 1. */
  readonly share: number;
}

/** A collective of a step. */
export interface CollectiveRow {
  readonly name: string;
  readonly kind: string;
  readonly axis: string;
  readonly algorithm?: string | undefined;
  readonly bytes: number;
  /** Time from the start of the collective until its result is available. */
  readonly seconds: Times;
  /** Time that the longest-waiting rank waits for this collective. */
  readonly exposedSeconds: Times;
  readonly predictedSeconds?: number | undefined;
}

/** A value that occupies memory during part of the step. */
export interface MemoryBlock {
  readonly name: string;
  /** Data type and shape of the value, such as `f32[64, 10]`. Absent: unknown. */
  readonly shape?: string | undefined;
  readonly bytes: number;
  /**
   * Index of the node that produces the value, in the step's list of nodes. `to` is the index of the last node that
   * uses the value.
   */
  readonly from: number;
  readonly to: number;
}

/** Memory use over one step. */
export interface MemoryProfile {
  /** Bytes in use during the whole step: parameters, optimizer state, batch. */
  readonly residentBytes: number;
  /** Bytes of intermediate values at each node of the step. */
  readonly liveBytes: readonly number[];
  /** Size of the planned workspace in bytes, including padding and gaps. */
  readonly workspaceBytes: number;
  /** Values that occupy memory, largest first. */
  readonly blocks: readonly MemoryBlock[];
}

/** A finding about a profile, with a recommended change and its predicted effect. */
export interface Advice {
  /** Finding in one sentence that contains a number, such as "74 % of the step is exposed all-reduce of 3 tensors". */
  readonly finding: string;
  /** Recommended action. Absent: no recommendation. */
  readonly cure?: string | undefined;
  /** Job settings that implement the recommendation. Absent: no job setting implements the recommendation. */
  readonly change?: { readonly [key: string]: unknown } | undefined;
  /** Predicted saving as a fraction of the step time, 0 to 1. Absent: not predicted. */
  readonly saves?: number | undefined;
  /** Method that produced the numbers of the finding, such as a measurement. */
  readonly basis: string;
}

/**
 * Result of profiling a job, as plain JSON. All outputs are generated from this object. Times are in seconds, sizes in
 * bytes.
 */
export interface ProfileReport {
  readonly format: "skein-profile";
  readonly version: 1;
  readonly job: string;
  /** Time when the report was created, ISO 8601. */
  readonly madeAt: string;
  readonly machine: string;
  readonly backend: string;
  readonly ranks: number;
  /** Number of measured steps. `warmUpSteps` is the number of warm-up steps before the measured steps. */
  readonly steps: number;
  readonly warmUpSteps: number;
  readonly samplesPerStep: number;
  readonly step: Times;
  /** Time per step that a rank waits for communication, averaged over ranks. */
  readonly exposedSeconds: Times;
  readonly predictedStepSeconds?: number | undefined;
  /** Name and peak rates of the device, for the roofline. Absent: unknown. */
  readonly device?:
    | { readonly name: string; readonly flopsPerSecond: number; readonly bytesPerSecond: number }
    | undefined;
  /** Rows of operators, largest first. */
  readonly operators: readonly OperatorRow[];
  /** Rows of time outside operators, largest share first. */
  readonly outside: readonly OutsideRow[];
  /** Description of the clock that measured the kernels, with its resolution. Absent: unknown. */
  readonly clock?: string | undefined;
  readonly collectives: readonly CollectiveRow[];
  readonly memory?: MemoryProfile | undefined;
  /**
   * Spans of the step with the median duration, in seconds from the start of the step. All ranks use the same clock.
   */
  readonly timeline: readonly RankSpans[];
  /** Spans of the simulated step. Absent if there is no prediction. */
  readonly predicted?: readonly RankSpans[] | undefined;
  readonly advice: readonly Advice[];
}
