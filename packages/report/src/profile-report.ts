import type { Phase, RankSpans } from "@skein/tensor-core";

/**
 * Phase of an operator in a step; `other` for kernels that are not nodes of the step's graph, such as a user's own
 * shader.
 */
export type RowPhase = Phase | "other";

/** Statistics of a time measured in several steps, in seconds. */
export interface Times {
  readonly median: number;
  /** Median absolute deviation from the median. */
  readonly mad: number;
  readonly n: number;
  /** Effective number of independent samples, if neighboring steps are correlated. Absent: n. */
  readonly effectiveN?: number | undefined;
}

/**
 * One operator in one scope of the model, summed over its calls in a step.
 *
 * Operators compute. Collectives and waits for them have rows of their own. Computation for communication, such as
 * packing or encoding a bucket, has the phase `communication`.
 */
export interface OperatorRow {
  readonly operator: string;
  /** Path of the model part, such as `block-0/attention`, without a trailing `/backward`. */
  readonly scope: string;
  readonly phase: RowPhase;
  readonly calls: number;
  /** Time of all calls in a step, on the slowest rank. */
  readonly seconds: Times;
  /** Share in the time of all ranks, 0 to 1. Adds up to 1 with the shares of `outside`. */
  readonly share: number;
  /** Floating-point operations. Absent if the graph of the step is unknown, as for a trace alone. */
  readonly flops?: number | undefined;
  /** Bytes read and written. Absent if the graph of the step is unknown. */
  readonly bytes?: number | undefined;
  /** Time by the roofline of the device. Absent if the device's peak rates are unknown. */
  readonly rooflineSeconds?: number | undefined;
  readonly boundBy?: "flops" | "bytes" | undefined;
  /** Time predicted by the cost model. */
  readonly predictedSeconds?: number | undefined;
}

/**
 * Time of a step outside operators.
 *
 * | kind | meaning |
 * | --- | --- |
 * | waiting | waiting for collectives: communication that computation does not hide |
 * | data | waiting for a batch |
 * | host | work of the rank's own thread, such as starting collectives or compiling |
 * | between | time without a span: between kernels, reading results, other programs on this core |
 */
export interface OutsideRow {
  readonly kind: "waiting" | "data" | "host" | "between";
  /** Time on the slowest rank. */
  readonly seconds: Times;
  /** Share in the time of all ranks, 0 to 1. */
  readonly share: number;
}

/** One collective of a step. */
export interface CollectiveRow {
  readonly name: string;
  readonly kind: string;
  readonly axis: string;
  readonly algorithm?: string | undefined;
  readonly bytes: number;
  /** Time from its start until its result was available. */
  readonly seconds: Times;
  /** Longest wait of a rank for this collective. */
  readonly exposedSeconds: Times;
  readonly predictedSeconds?: number | undefined;
}

/** A value that occupies memory during a part of the step. */
export interface MemoryBlock {
  readonly name: string;
  /** Data type and shape, such as `f32[64, 10]`. */
  readonly shape?: string | undefined;
  readonly bytes: number;
  /** Positions in the step's list of nodes: from the node that produces the value to its last use, both included. */
  readonly from: number;
  readonly to: number;
}

/** Memory over one step. */
export interface MemoryProfile {
  /** Memory in use during the whole step: parameters, optimizer state, batch. */
  readonly residentBytes: number;
  /** Bytes of intermediates at each node of the step. */
  readonly liveBytes: readonly number[];
  /** Size of the planned workspace, including bytes lost to its layout. */
  readonly workspaceBytes: number;
  /** Largest first. */
  readonly blocks: readonly MemoryBlock[];
}

/** A finding about a profile, with a possible change and its effect. */
export interface Advice {
  /** A sentence with its number, such as "74 % of the step is exposed all-reduce of 3 tensors". */
  readonly finding: string;
  /** Recommended action. Absent if there is none. */
  readonly cure?: string | undefined;
  /** Job settings that apply the recommendation. */
  readonly change?: { readonly [key: string]: unknown } | undefined;
  /** Predicted saving as a share of the step, 0 to 1. */
  readonly saves?: number | undefined;
  /** Source of the number in the finding. */
  readonly basis: string;
}

/** Result of profiling a job: plain JSON, from which every output is made. Times in seconds, sizes in bytes. */
export interface ProfileReport {
  readonly format: "skein-profile";
  readonly version: 1;
  readonly job: string;
  /** Time of the report, ISO 8601. */
  readonly madeAt: string;
  readonly machine: string;
  readonly backend: string;
  readonly ranks: number;
  /** Number of measured steps, and of warm-up steps before them. */
  readonly steps: number;
  readonly warmUpSteps: number;
  readonly samplesPerStep: number;
  readonly step: Times;
  /** Waiting for communication in a step, mean over ranks. */
  readonly exposedSeconds: Times;
  readonly predictedStepSeconds?: number | undefined;
  /** Peak rates for the roofline. */
  readonly device?:
    | { readonly name: string; readonly flopsPerSecond: number; readonly bytesPerSecond: number }
    | undefined;
  /** Largest first. */
  readonly operators: readonly OperatorRow[];
  /** Largest share first. */
  readonly outside: readonly OutsideRow[];
  /** Description of the clock that timed the kernels, and of its resolution. */
  readonly clock?: string | undefined;
  readonly collectives: readonly CollectiveRow[];
  readonly memory?: MemoryProfile | undefined;
  /** Spans of the step of median duration, in seconds from its begin; all ranks on one clock. */
  readonly timeline: readonly RankSpans[];
  /** Spans of the simulated step. */
  readonly predicted?: readonly RankSpans[] | undefined;
  readonly advice: readonly Advice[];
}
