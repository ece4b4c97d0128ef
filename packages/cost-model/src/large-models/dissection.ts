import type { InferenceEstimate } from "./inference.ts";
import type { LargestBatch } from "./largest-batch.ts";
import type { OperatorRow } from "./pass-rows.ts";
import type { TrainingEstimate } from "./training.ts";
import type { CollectiveRow } from "./training-communication.ts";

/** An operator's figures, with its share of the whole step, or of its pass in inference. */
export interface DissectedOperator extends OperatorRow {
  /** Share of the step's time, 0 to 1. */
  readonly share: number;
}

/** A module with all its operators, over all passes of training or one pass of inference. */
export interface DissectedModule {
  readonly part: string;
  /** Number of equal layers in this row; figures are totals over all of them. */
  readonly repeats: number;
  readonly module: string;
  /** `step` includes all passes of training. */
  readonly pass: "step" | "prefill" | "decode";
  readonly seconds: number;
  readonly share: number;
  readonly flops: number;
  readonly bytes: number;
  /** Bound of its longest operator. */
  readonly boundBy: OperatorRow["boundBy"];
  /** Parameters of a rank, all repeats. */
  readonly parameters: number;
  readonly weightBytes: number;
  /** Bytes saved for the backward pass by all repeats, without recomputation; 0 for inference. */
  readonly savedBytes: number;
}

/** A kind of memory of one rank. */
export interface DissectedMemory {
  readonly kind: string;
  readonly bytes: number;
}

/**
 * Estimated time and memory of a large model; plain data. Times in seconds, sizes in bytes, per rank unless noted
 * otherwise.
 */
export interface Dissection {
  readonly model: string;
  readonly hardware: string;
  readonly task: "training" | "inference";
  readonly ranks: number;
  /** Unit of throughput: tokens of a transformer, images of a residual network. */
  readonly item: "token" | "image";
  /** Parameters of the whole model, adapters included. */
  readonly parameters: number;
  /** Modules in the order of the forward pass. */
  readonly modules: readonly DissectedModule[];
  /** Operators, longest first. */
  readonly operators: readonly DissectedOperator[];
  readonly collectives: readonly CollectiveRow[];
  /** Kinds of memory, largest first, without those of 0 bytes. */
  readonly memory: readonly DissectedMemory[];
  readonly memoryBytes: number;
  readonly capacityBytes: number;
  readonly largestBatch: LargestBatch;
  readonly itemsPerSecond: number;
  /** All figures of the training estimate. Absent for inference. */
  readonly training?: TrainingEstimate | undefined;
  /** All figures of the inference estimate. Absent for training. */
  readonly inference?: InferenceEstimate | undefined;
  readonly assumptions: readonly string[];
}
