import type { InferenceEstimate } from "./inference.ts";
import type { LargestBatch } from "./largest-batch.ts";
import type { OperatorRow } from "./pass-rows.ts";
import type { TrainingEstimate } from "./training.ts";
import type { CollectiveRow } from "./training-communication.ts";

/** A figure of an operator, a module or a part, with its share of the whole step, or of its pass of inference. */
export interface DissectedOperator extends OperatorRow {
  /** 0 to 1. */
  readonly share: number;
}

/** A module with all its operators and passes of training, or one pass of inference. */
export interface DissectedModule {
  readonly part: string;
  /** A module of 32 equal layers is one row; its figures are those of all 32. */
  readonly repeats: number;
  readonly module: string;
  /** `step` holds all passes of training. */
  readonly pass: "step" | "prefill" | "decode";
  readonly seconds: number;
  readonly share: number;
  readonly flops: number;
  readonly bytes: number;
  /** What holds up its longest operator. */
  readonly boundBy: OperatorRow["boundBy"];
  /** Of a rank, all repeats. */
  readonly parameters: number;
  readonly weightBytes: number;
  /** Kept for the backward pass by all repeats, without recomputation; 0 of inference. */
  readonly savedBytes: number;
}

/** A kind of memory of one rank. */
export interface DissectedMemory {
  readonly kind: string;
  readonly bytes: number;
}

/**
 * Where time and memory of a large model would go; plain data. Times are seconds, sizes bytes, of one rank where
 * nothing else is said.
 */
export interface Dissection {
  readonly model: string;
  readonly hardware: string;
  readonly task: "training" | "inference";
  readonly ranks: number;
  /** What is counted: tokens of a transformer, images of a residual network. */
  readonly item: "token" | "image";
  /** Of the whole model, adapters included. */
  readonly parameters: number;
  /** In the order of the forward pass. */
  readonly modules: readonly DissectedModule[];
  /** Longest first. */
  readonly operators: readonly DissectedOperator[];
  readonly collectives: readonly CollectiveRow[];
  /** Largest first; without what is zero. */
  readonly memory: readonly DissectedMemory[];
  readonly memoryBytes: number;
  readonly capacityBytes: number;
  readonly largestBatch: LargestBatch;
  readonly itemsPerSecond: number;
  /** All figures of the estimate, by task. */
  readonly training?: TrainingEstimate | undefined;
  readonly inference?: InferenceEstimate | undefined;
  readonly assumptions: readonly string[];
}
