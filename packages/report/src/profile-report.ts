import type { Phase, RankSpans } from "@skein/tensor-core";

/** A part of a step; `other` for what ran without being a node of it, such as a shader of a user's own. */
export type RowPhase = Phase | "other";

/** A time that was measured several times: seconds. */
export interface Times {
  readonly median: number;
  /** Median absolute deviation from the median. */
  readonly mad: number;
  readonly n: number;
  /** How many independent ones they are worth, where neighbours were found to be alike; n where it is not told. */
  readonly effectiveN?: number | undefined;
}

/**
 * One operator at one place of the model, summed over its calls in a step.
 *
 * Operators compute; collectives and waits for them are none, and have rows of their own. What is computed for
 * communication, such as packing a bucket or encoding it, is of the phase `communication`.
 */
export interface OperatorRow {
  readonly operator: string;
  /** Path of the model part, such as `block-0/attention`, without a trailing `/backward`. */
  readonly scope: string;
  readonly phase: RowPhase;
  readonly calls: number;
  /** Of all its calls in a step, on the rank that takes longest. */
  readonly seconds: Times;
  /** Of the time of all ranks, 0 to 1. With the shares of `outside` they add up to 1. */
  readonly share: number;
  /** Absent where the graph of the step is not known, as of a trace alone. */
  readonly flops?: number | undefined;
  /** Read and written. Absent as flops are. */
  readonly bytes?: number | undefined;
  /** The roofline of the device. Absent where the device's peaks are not known. */
  readonly rooflineSeconds?: number | undefined;
  readonly boundBy?: "flops" | "bytes" | undefined;
  /** What the cost model says. */
  readonly predictedSeconds?: number | undefined;
}

/**
 * What a step spends outside of its operators.
 *
 * | kind | what it is |
 * | --- | --- |
 * | waiting | for collectives: communication that computation did not hide |
 * | data | waiting for a batch |
 * | host | what the rank's thread does by itself, such as starting collectives or compiling |
 * | between | no span covers it: the way from kernel to kernel, results that are read, other programs on this core |
 */
export interface OutsideRow {
  readonly kind: "waiting" | "data" | "host" | "between";
  /** On the rank that takes longest. */
  readonly seconds: Times;
  /** As of operators. */
  readonly share: number;
}

/** One collective of a step. */
export interface CollectiveRow {
  readonly name: string;
  readonly kind: string;
  readonly axis: string;
  readonly algorithm?: string | undefined;
  readonly bytes: number;
  /** From when it was started until its result was there. */
  readonly seconds: Times;
  /** What the rank that waits longest waits for it. */
  readonly exposedSeconds: Times;
  readonly predictedSeconds?: number | undefined;
}

/** A value that lies in memory for a part of the step. */
export interface MemoryBlock {
  readonly name: string;
  /** As `f32[64, 10]`. */
  readonly shape?: string | undefined;
  readonly bytes: number;
  /** Positions in the step's list of nodes: from where it is made until where it is last used, both included. */
  readonly from: number;
  readonly to: number;
}

/** Memory over one step. */
export interface MemoryProfile {
  /** Parameters, optimizer state, batch: what lies there all the time. */
  readonly residentBytes: number;
  /** Bytes of intermediates at each node of the step. */
  readonly liveBytes: readonly number[];
  /** What the plan takes, with what its layout wastes. */
  readonly workspaceBytes: number;
  /** Largest first. */
  readonly blocks: readonly MemoryBlock[];
}

/** What could be changed, and what it would bring. */
export interface Advice {
  /** A sentence with its number, such as "74 % of the step is exposed all-reduce of 3 tensors". */
  readonly finding: string;
  /** A sentence that says what to do; absent where there is nothing to do. */
  readonly cure?: string | undefined;
  /** Settings of the job file that carry it out. */
  readonly change?: { readonly [key: string]: unknown } | undefined;
  /** Predicted part of the step that it saves, 0 to 1. */
  readonly saves?: number | undefined;
  /** How the number was found. */
  readonly basis: string;
}

/** What a profile says of a job: plain JSON, from which every output is made. Times are seconds, sizes bytes. */
export interface ProfileReport {
  readonly format: "skein-profile";
  readonly version: 1;
  readonly job: string;
  /** ISO 8601. */
  readonly madeAt: string;
  readonly machine: string;
  readonly backend: string;
  readonly ranks: number;
  /** Steps that count, and those before them that do not. */
  readonly steps: number;
  readonly warmUpSteps: number;
  readonly samplesPerStep: number;
  readonly step: Times;
  /** Waiting for communication, mean of ranks. */
  readonly exposedSeconds: Times;
  readonly predictedStepSeconds?: number | undefined;
  /** What the roofline is drawn with. */
  readonly device?:
    | { readonly name: string; readonly flopsPerSecond: number; readonly bytesPerSecond: number }
    | undefined;
  /** Largest first. */
  readonly operators: readonly OperatorRow[];
  /** Largest share first. */
  readonly outside: readonly OutsideRow[];
  /** By which clock kernels were timed: what it is, and how fine. */
  readonly clock?: string | undefined;
  readonly collectives: readonly CollectiveRow[];
  readonly memory?: MemoryProfile | undefined;
  /** The spans of the step whose time is the median, from its begin; all ranks by one clock. */
  readonly timeline: readonly RankSpans[];
  /** The same step as the simulator has it. */
  readonly predicted?: readonly RankSpans[] | undefined;
  readonly advice: readonly Advice[];
}
