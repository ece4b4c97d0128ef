import type { InferenceEstimate } from "./inference.ts";
import type { LargestBatch } from "./largest-batch.ts";
import type { OperatorRow } from "./pass-rows.ts";
import type { TrainingEstimate } from "./training.ts";
import type { CollectiveRow } from "./training-communication.ts";

/** Metrics of an operator, with its share of the step (training) or pass (inference). */
export interface DissectedOperator extends OperatorRow {
  /** Share of the total time: of the step in training, of the pass in inference; 0 to 1. */
  readonly share: number;
}

/** Metrics of a module: totals over its operators, and over all passes in training or within one pass in inference. */
export interface DissectedModule {
  readonly part: string;
  /** Number of equal layers in this row. All metrics are totals over these layers. */
  readonly repeats: number;
  readonly module: string;
  /** Pass of this row; `step` means all passes of a training step. */
  readonly pass: "step" | "prefill" | "decode";
  readonly seconds: number;
  readonly share: number;
  readonly flops: number;
  readonly bytes: number;
  /** Resource that limits the module's slowest operator: arithmetic, memory, or kernel launch. */
  readonly boundBy: OperatorRow["boundBy"];
  /** Number of parameters on one rank, in all repeats. */
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
  /** Number of parameters in the full model, including adapters. */
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
