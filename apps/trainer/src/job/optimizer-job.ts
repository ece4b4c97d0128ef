import type { ModuleJob, ProgramJob } from "./module-job.ts";

interface AdamJob {
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
}

export type OptimizerJob =
  | { readonly kind: "sgd"; readonly weightDecay: number }
  | { readonly kind: "momentum" | "nesterov"; readonly decay: number; readonly weightDecay: number }
  | ({ readonly kind: "adam" } & AdamJob)
  | ({ readonly kind: "adamw"; readonly weightDecay: number } & AdamJob)
  | CurvatureJob
  | ({ readonly kind: "eva-s"; readonly damping: number; readonly variant: "product" | "roots" } & UpdateSizeJob &
      AfterPreconditioning)
  | ({
      readonly kind: "shampoo";
      /** Decay of the second moments; 1: moments are summed. */
      readonly secondMomentDecay: number;
      readonly blockSize: number;
      readonly ridge: number;
      readonly grafting: boolean;
      /** Number of steps between two computations of the roots. */
      readonly rootsEvery: number;
    } & AfterPreconditioning)
  | {
      readonly kind: "soap";
      readonly beta1: number;
      readonly beta2: number;
      readonly epsilon: number;
      readonly weightDecay: number;
      readonly largestSide: number;
      /** Number of steps between two computations of the bases. */
      readonly basesEvery: number;
    }
  | {
      readonly kind: "muon";
      readonly momentum: number;
      readonly nesterov: boolean;
      readonly steps: number;
      readonly weightDecay: number;
      readonly adamShare: number;
    }
  | { readonly kind: "lars"; readonly decay: number; readonly weightDecay: number; readonly coefficient: number }
  | ({ readonly kind: "lamb"; readonly weightDecay: number } & AdamJob)
  | ModuleJob
  | ProgramJob;

interface AfterPreconditioning {
  readonly momentum: number;
  readonly weightDecay: number;
}

/** Method of scaling a preconditioned gradient. */
export interface UpdateSizeJob {
  readonly size: "kl-clip" | "gradient-norm" | "free";
  readonly klClip: number;
}

/**
 * Options of optimizers that precondition by curvature; momentum and weight decay are applied after preconditioning.
 */
interface CurvatureMethodJob extends UpdateSizeJob, AfterPreconditioning {
  readonly damping: number;
  /** Decay of the running means of statistics. */
  readonly curvatureDecay: number;
  /** Number of samples of each rank's share of a batch from which statistics are gathered. Default: all. */
  readonly statisticsSamples?: number | undefined;
}

/** Settings of optimizers that need statistics of layers. */
export type CurvatureJob =
  | ({ readonly kind: "eva" | "eva-f" } & CurvatureMethodJob)
  | ({
      readonly kind: "kfac";
      readonly positions: "expand" | "reduce";
      /** Number of steps between two updates of factors. */
      readonly factorEvery: number;
      /** Number of steps between two inversions. */
      readonly inverseEvery: number;
      readonly inverse: "cholesky" | "eigen";
      /** Maximum number of rows of a diagonal block of a factor. Default: all rows. */
      readonly blockSize?: number | undefined;
      readonly form: KfacFormName;
      /** Fraction of the ranks that precondition each layer, for the forms kaisa, pad, dp-hybrid and auto. */
      readonly gradientWorkers: number;
      /** Grouping of factors into messages. Default: planned for the forms spd and auto, otherwise 4 MiB. */
      readonly factorBuckets?: FactorBucketsJob | undefined;
    } & CurvatureMethodJob);

/**
 * Grouping of factors into messages, in the order of their computation. `per-factor`: one factor per message.
 * `fixed-size`: messages of up to `bytes` bytes. `planned`: grouping with which factors arrive earliest, from
 * measurements before the first step.
 */
export type FactorBucketsJob =
  | { readonly kind: "per-factor" }
  | { readonly kind: "fixed-size"; readonly bytes: number }
  | { readonly kind: "planned" };

/** Division of K-FAC's work among ranks. `auto`: chosen from measurements. */
export type KfacFormName = "d" | "mpd" | "spd" | "kaisa" | "pad" | "dp" | "dp-hybrid" | "auto";

export interface LearningRateJob {
  readonly peak: number;
  readonly warmupSteps: number;
  readonly decay: "constant" | "cosine" | "step" | "linear" | "polynomial" | "wsd" | "one-cycle";
  /** User schedule, which replaces `decay`. */
  readonly schedule?: ModuleJob | ProgramJob | undefined;
  readonly final: number;
  readonly factor: number;
  readonly everySteps?: number | undefined;
  /** Exponent of the decay `polynomial`. Default: 2. */
  readonly power?: number | undefined;
  /** Fraction of the steps after the warm-up in which the learning rate decreases, for `wsd`. Default: 0.2. */
  readonly decayShare?: number | undefined;
  /** Fraction of the steps in which the learning rate increases, for `one-cycle`. Default: 0.3. */
  readonly riseShare?: number | undefined;
}

export type PrecisionJob =
  | { readonly kind: "f32" }
  | { readonly kind: "mixed-bf16" }
  | { readonly kind: "mixed-f16"; readonly initialScale: number; readonly growthInterval: number };
