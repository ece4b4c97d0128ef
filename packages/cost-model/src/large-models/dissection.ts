import type { InferenceEstimate } from "./inference.ts";
import type { LargestBatch } from "./largest-batch.ts";
import type { OperatorRow } from "./pass-rows.ts";
import type { TrainingEstimate } from "./training.ts";
import type { CollectiveRow } from "./training-communication.ts";

/** Metrics of an operator, with its share of the step (training) or of its pass (inference). */
export interface DissectedOperator extends OperatorRow {
  /** Share of the total time of the step or pass, 0 to 1. */
  readonly share: number;
}

/** A module with all its operators, totals over all passes of training or for one pass of inference. */
export interface DissectedModule {
  readonly part: string;
  /** Number of equal layers in this row; all metrics are totals over these layers. */
  readonly repeats: number;
  readonly module: string;
  /** Pass of this row; `step` means all passes of training. */
  readonly pass: "step" | "prefill" | "decode";
  readonly seconds: number;
  readonly share: number;
  readonly flops: number;
  readonly bytes: number;
  /** Bound of the module's longest operator. */
  readonly boundBy: OperatorRow["boundBy"];
  /** Number of parameters of all repeats on one rank. */
  readonly parameters: number;
  readonly weightBytes: number;
  /** Bytes that all repeats save for the backward pass if nothing is recomputed; 0 for inference. */
  readonly savedBytes: number;
}

/** A category of memory on one rank, with its bytes. */
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
  /** Unit of throughput: a token for transformers, an image for residual networks. */
  readonly item: "token" | "image";
  /** Number of parameters of the whole model, including adapters. */
  readonly parameters: number;
  /** Modules in the order of the forward pass. */
  readonly modules: readonly DissectedModule[];
  /** Operators, longest first. */
  readonly operators: readonly DissectedOperator[];
  readonly collectives: readonly CollectiveRow[];
  /** Categories of memory, largest first; categories of 0 bytes are left out. */
  readonly memory: readonly DissectedMemory[];
  readonly memoryBytes: number;
  readonly capacityBytes: number;
  readonly largestBatch: LargestBatch;
  readonly itemsPerSecond: number;
  /** All values of the training estimate. Absent for inference. */
  readonly training?: TrainingEstimate | undefined;
  /** All values of the inference estimate. Absent for training. */
  readonly inference?: InferenceEstimate | undefined;
  readonly assumptions: readonly string[];
}
