import type { ModuleJob, ProgramJob } from "./module-job.ts";

// Types of a checked job that concern the exchange of gradients.

/** Options that apply to every compressor. */
interface AroundCompression {
  /** Number of first steps whose gradients are sent without compression. */
  readonly warmupSteps: number;
  /** Minimum number of elements of a compressed tensor; smaller tensors are sent without compression. */
  readonly denseBelow: number;
  /** Whether biases, gains and other vectors are sent without compression. */
  readonly denseVectors: boolean;
  /** Decay of the momentum, which is exchanged instead of gradients; 0: gradients are exchanged. */
  readonly momentum: number;
}

interface ErrorFeedback {
  /** Whether the unsent part of a gradient is added to the next gradient. */
  readonly errorFeedback: boolean;
}

export interface DensityWarmup {
  readonly densities: readonly number[];
  readonly stepsEach: number;
}

interface Sparse extends AroundCompression {
  readonly density: number;
  /** Densities of the first steps. Absent: no density warm-up. */
  readonly densityWarmup?: DensityWarmup | undefined;
}

export interface EightBitJob {
  readonly kind: "eight-bit";
  readonly blockSize: number;
}

export interface QsgdJob {
  readonly kind: "qsgd";
  readonly levels: number;
  readonly bucketSize: number;
}

/** Quantization of the values that a sparsifier sends. Absent: f32 values. */
interface Chained {
  readonly values?: EightBitJob | QsgdJob | undefined;
}

export type CompressionJob =
  | ((ModuleJob | ProgramJob) &
      AroundCompression & {
        /**
         * Whether the unsent part of a gradient is added to the next gradient. Default: true if the codec declares
         * itself biased.
         */
        readonly errorFeedback?: boolean | undefined;
      })
  | { readonly kind: "identity"; readonly chunkBytes?: number | undefined }
  | ({ readonly kind: "top-k" | "random-k" } & Sparse & Chained & ErrorFeedback)
  | ({ readonly kind: "gaussian-k" | "g-top-k" | "ok-top-k" } & Sparse & ErrorFeedback)
  | ({ readonly kind: "ms-top-k"; readonly samplings: number } & Sparse & Chained & ErrorFeedback)
  | ({ readonly kind: "hierarchical-top-k"; readonly ranksPerHost: number } & Sparse & ErrorFeedback)
  | ({ readonly kind: "threshold"; readonly threshold: number; readonly capacity: number } & AroundCompression &
      ErrorFeedback)
  | ({ readonly kind: "dgc"; readonly momentum: number; readonly clipNorm?: number | undefined } & Sparse)
  | ({ readonly kind: "ef21" } & Sparse)
  | ({ readonly kind: "lags"; readonly minDensity: number; readonly maxDensity: number } & AroundCompression &
      ErrorFeedback)
  | ({ readonly kind: "majority-vote" } & AroundCompression)
  | ({ readonly kind: "scaled-sign"; readonly perTensor: boolean } & AroundCompression & ErrorFeedback)
  | ({ readonly kind: "one-bit"; readonly blockSize: number } & AroundCompression & ErrorFeedback)
  | (QsgdJob & AroundCompression)
  | ({ readonly kind: "tern-grad"; readonly clip: number } & AroundCompression)
  | ({ readonly kind: "eight-bit" | "agoq"; readonly blockSize: number } & AroundCompression & ErrorFeedback)
  | ({
      readonly kind: "power-sgd" | "acp-sgd";
      readonly rank: number;
      readonly minimumCompression: number;
    } & AroundCompression &
      ErrorFeedback);

export type BucketsJob =
  | { readonly kind: "per-tensor" }
  | { readonly kind: "fixed-size"; readonly bytes: number }
  /** Buckets with which the exchange finishes earliest, given a measured backward pass and measured links. */
  | { readonly kind: "mg-wfbp"; readonly plan: "exact" | "greedy" | "simultaneous"; readonly profileSteps: number }
  /** Buckets that are sent while links are idle between the measured exchanges of tokens. */
  | { readonly kind: "moe-idle"; readonly profileSteps: number }
  /** Buckets whose size is tuned during the run. */
  | {
      readonly kind: "tuned";
      readonly trials: number;
      readonly stepsEach: number;
      readonly minBytes: number;
      readonly maxBytes: number;
    };

/**
 * Time of the gradient exchange: after the backward pass, during the backward pass, or half during the backward pass
 * and half during the next forward pass.
 */
export type OverlapName = "none" | "wait-free" | "dear";

/**
 * Order of collectives: as they become ready, first the parameters that the next forward pass needs first, or two at a
 * time.
 */
export type PrioritiesName = "none" | "forward" | "spread";
