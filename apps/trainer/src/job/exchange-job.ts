import type { ModuleJob, ProgramJob } from "./module-job.ts";

// How gradients travel, as a checked job says it.

/** What goes for every compressor. */
interface AroundCompression {
  /** Steps at the beginning whose gradients travel dense. */
  readonly warmupSteps: number;
  /** Tensors with fewer elements travel dense. */
  readonly denseBelow: number;
  /** Biases and gains travel dense. */
  readonly denseVectors: boolean;
  /** Share of the past in the running mean of gradients that is exchanged in their place; 0 for none. */
  readonly momentum: number;
}

interface ErrorFeedback {
  /** Keep what was not sent and add it to the next gradient. */
  readonly errorFeedback: boolean;
}

export interface DensityWarmup {
  readonly densities: readonly number[];
  readonly stepsEach: number;
}

interface Sparse extends AroundCompression {
  readonly density: number;
  /** Densities of the first steps. */
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

/** What compresses the values that a sparsifier sends. */
interface Chained {
  readonly values?: EightBitJob | QsgdJob | undefined;
}

export type CompressionJob =
  | ((ModuleJob | ProgramJob) &
      AroundCompression & {
        /** Default: where what the module makes says that it is biased. */
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
  | ({ readonly kind: "lags"; readonly leastDensity: number; readonly mostDensity: number } & AroundCompression &
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
  /** Merged so that a measured backward pass and measured links end soonest. */
  | { readonly kind: "mg-wfbp"; readonly plan: "exact" | "greedy" | "simultaneous"; readonly profileSteps: number }
  /** Merged so that they travel in what measured layers of experts leave idle. */
  | { readonly kind: "moe-idle"; readonly profileSteps: number }
  /** Of a size that is searched for while training runs. */
  | {
      readonly kind: "tuned";
      readonly trials: number;
      readonly stepsEach: number;
      readonly leastBytes: number;
      readonly mostBytes: number;
    };

/** When gradients travel: after the backward pass, during it, or in halves on both sides of the end of a step. */
export type OverlapName = "none" | "wait-free" | "dear";

/** Which collectives go first: none, those whose parameters are needed first, or two at a time. */
export type PrioritiesName = "none" | "forward" | "spread";
