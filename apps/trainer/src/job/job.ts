import type { BucketsJob, CompressionJob, OverlapName, PrioritiesName } from "./exchange-job.ts";
import type { ModuleJob, ProgramJob } from "./module-job.ts";

export type * from "./exchange-job.ts";
export type { ModuleJob, ProgramJob } from "./module-job.ts";

import type { ColourJitter, Decoding, ResamplingFilter, ResizedCrop } from "@skein/data";
import type {
  DocumentOptions,
  ImageOptions,
  NumpyOptions,
  ParquetOptions,
  ShardOptions,
  TokenFileOptions,
  StreamOptions,
} from "@skein/data/node";

/** A checked job: every default filled in, every rule kept. What a job file may say stands in `job-schema.ts`. */
export interface Job {
  readonly name: string;
  readonly seed: number;
  readonly ranks: number;
  /** How many ranks lie along each axis; all of them share the batch. */
  readonly mesh: MeshJob;
  /** Stage of ZeRO: what ranks that hold the same parameters share out. */
  readonly zero: 0 | 1;
  /** `auto` is resolved before a run begins, and the run's own job says what it became. */
  readonly backend: "auto" | "cpu" | "webgpu";
  /** Whether products on the CPU run on the BLAS that was built here, if any. */
  readonly blas: "auto" | "off";
  /** Of each rank on the CPU. Default: the cores of its machine shared by all ranks. */
  readonly threads?: number | undefined;
  readonly precision: PrecisionJob;
  /** Samples per step, of all ranks together. */
  readonly batch: number;
  /** Parts that each rank computes its share of a batch in, one after the other. Default: all of it at once. */
  readonly accumulate?: number | undefined;
  /** A running mean of the parameters, by which a run is judged and which it leaves. Default: none. */
  readonly average?: { readonly decay: number } | undefined;
  /** Share of the targets that the loss spreads over all classes. Default: what the model says. */
  readonly labelSmoothing?: number | undefined;
  /** Patterns of parameters that stay as they are; one that begins with `!` takes some back. Default: none. */
  readonly freeze?: readonly string[] | undefined;
  /** Factors of the learning rate, by patterns of parameters; the last that fits decides. Default: 1 of all. */
  readonly rates?: Readonly<Record<string, number>> | undefined;
  /** Factors of the optimizer's weight decay, by patterns. Default: what the optimizer does. */
  readonly weightDecays?: Readonly<Record<string, number>> | undefined;
  /** Exactly one of epochs and steps is given. */
  readonly epochs?: number | undefined;
  readonly steps?: number | undefined;
  readonly data: DataJob;
  readonly model: ModelJob;
  readonly optimizer: OptimizerJob;
  readonly learningRate: LearningRateJob;
  readonly clipNorm?: number | undefined;
  readonly memory: MemoryJob;
  readonly compression: CompressionJob;
  readonly buckets: BucketsJob;
  readonly overlap: OverlapName;
  readonly priorities: PrioritiesName;
  /** How ranks reach each other. */
  readonly transport: TransportName;
  readonly network: NetworkJob;
  /** In which order collectives add: that of ranks gives the same bits on every transport and network. */
  readonly sumOrder: "rank" | "any";
  readonly evaluation: EvaluationJob;
  /** Figures that the run is judged by beside those of its model. */
  readonly metrics?: ModuleJob | ProgramJob | undefined;
  /** Functions that are called when something happens in the run; they change no bit. */
  readonly callbacks?: ModuleJob | ProgramJob | undefined;
  /** Take histograms of weights and gradients every so many steps; changes no bit. Default: when somebody asks. */
  readonly histograms?: { readonly everySteps: number } | undefined;
  readonly checkpoint: {
    readonly everySteps?: number | undefined;
    readonly keep: number;
    /** Save after an evaluation that is better than all before, and keep that checkpoint beside the newest. */
    readonly best?: boolean | undefined;
  };
  /** Steps after which ranks compare their parameters; 0 for never. */
  readonly replicas: { readonly checkEverySteps: number };
}

/** When a run is judged by held-out samples, and what follows from it. */
export interface EvaluationJob {
  readonly batch: number;
  readonly everyEpochs?: number | undefined;
  readonly everySteps?: number | undefined;
  /** End the run once so many evaluations in a row were no better than the best before. Default: never. */
  readonly stopAfter?: number | undefined;
  /** What evaluations are compared by. Default: the loss, of which less is better. */
  readonly compareBy?: { readonly figure: string; readonly better: "lower" | "higher" } | undefined;
  /** Held-out samples whose outputs are shown after each evaluation. Default: none. */
  readonly samples?: number | undefined;
}

/** What ranks share out beside the batch. */
export interface MeshJob {
  /** Ranks that hold the same of everything. Default: all ranks over those along the other axes. */
  readonly data?: number | undefined;
  /** Ranks that share out the experts of each layer. */
  readonly expert: number;
  /** How these lie in groups of groups, such as hosts and ranks of each, from the outermost. Default: one level. */
  readonly expertLevels?: readonly number[] | undefined;
  /** Ranks that have the same samples and share out the matrices of each block. */
  readonly tensor: number;
}

/** What a training step keeps for its backward pass. */
export interface MemoryJob {
  readonly recompute: "none" | "auto" | "blocks";
  /** With `auto`: most bytes of intermediates of a step, on each rank. */
  readonly maxBytes?: number | undefined;
}

export type TransportName = "threads" | "tcp" | "tls" | "mpi";

/** What ranks that are processes need to know; without effect on what they compute. */
export interface NetworkJob {
  /** Ranks that share a process, as threads. */
  readonly ranksPerProcess: number;
  /** Address that a process listens on for data. */
  readonly listen?: string | undefined;
  /** Folder made by `skein-train certs init`; without it a run on one machine makes its own. */
  readonly certificates?: string | undefined;
  /** Off loopback without TLS. */
  readonly insecure: boolean;
  readonly timeoutSeconds: number;
  /** How often a process and a link give a sign of life. */
  readonly heartbeatSeconds?: number | undefined;
  /** After what silence a process or link is lost. */
  readonly silenceSeconds?: number | undefined;
  /** How long ranks may take to come. */
  readonly joinSeconds: number;
  readonly socketsPerPair?: number | undefined;
  /** File of `skein-train links`. */
  readonly links?: string | undefined;
  /** When to code what travels, without loss. */
  readonly codec: "auto" | "always" | "never";
  /** Check every payload, or only headers. */
  readonly checksum?: "payload" | "header" | undefined;
  readonly emulate?: EmulatedLink | undefined;
}

export interface EmulatedLink {
  readonly bytesPerSecond: number;
  readonly latencySeconds: number;
  readonly jitterSeconds: number;
  readonly sharesLine: boolean;
}

interface Limits {
  /** Fraction of the training samples that is held back and replaces the test samples, in (0, 1). */
  readonly validationFraction?: number | undefined;
  /** Whether validation samples are drawn at random or are the last ones. Default: see `validationSplit`. */
  readonly validationFrom?: "draw" | "end" | undefined;
  readonly trainSamples?: number | undefined;
  readonly testSamples?: number | undefined;
  /** The run is judged by the samples that it learns from: `run --overfit`. */
  readonly judgeBy?: "training" | undefined;
}

/** A file of images and the file of their classes. */
interface IdxPairJob {
  readonly images: string;
  readonly labels: string;
}

/** Windows of a text. */
export interface TextJob extends Limits {
  /** Bytes, or tokens, that the model sees at once. */
  readonly window: number;
  readonly testFraction: number;
  /** A tokenizer.json, or its folder; absolute once the job is loaded. Default: bytes are the tokens. */
  readonly tokenizer?: string | undefined;
}

/** A checkpoint in Hugging Face's layout: what it is, and where its weights lie. */
/** What a pretrained model's images were when it was trained. */
export interface PreprocessorJob {
  /** The file that says so; absent in jobs of old, which knew one. */
  readonly file?: string | undefined;
  readonly normalise?: NormaliseJob | undefined;
  /** Rows and columns as the model sees them. */
  readonly size?: readonly [number, number] | undefined;
  /** What they were brought to before their middle was cut out: the shorter side, or rows and columns. */
  readonly resize?: number | readonly [number, number] | undefined;
  readonly resample?: ResamplingFilter | undefined;
}

export interface PretrainedJob {
  readonly kind: "pretrained";
  /** Absolute once the job is loaded. */
  readonly folder: string;
  /** Begin with those of the folder, or with fresh ones of its configuration. */
  readonly weights: "folder" | "none";
  /** Leave the checkpoint's head, and make one for the classes of the data. */
  readonly head?: "new" | undefined;
  /** What preprocessor_config.json says, where there is one, once the job is loaded. */
  readonly preprocessor?: PreprocessorJob | undefined;
  /** What config.json says, once the job is loaded. */
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** SHA-256 of what the folder's files hold, of those that the run begins with, once the job is loaded. */
  readonly digest?: string | undefined;
}

/** How images change from epoch to epoch. */
export interface AugmentJob {
  /** Pixels that they may be moved by, each way. */
  readonly crop: number;
  /** Whether they are mirrored, half of the time. */
  readonly flip: boolean;
  /** Which parts of them are shown. */
  readonly resizedCrop?: ResizedCrop | undefined;
  /** How far their colours change. */
  readonly jitter?: ColourJitter | undefined;
}

/** Means and standard deviations of the channels of images, or one each for all. */
export interface NormaliseJob {
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** What goes for all images. */
interface Images extends Limits {
  readonly augment?: AugmentJob | undefined;
  readonly normalise?: NormaliseJob | undefined;
}

/** Images of any size that become samples of one. */
interface DecodedImages extends Images, Omit<ImageOptions, "size" | "from" | "fit" | "resample"> {
  /** Default: cover, or as a pretrained model has it. */
  readonly fit?: Decoding["fit"] | undefined;
  /** Default: `decoder`, as what decodes does by itself; or as a pretrained model has it. */
  readonly resample?: ResamplingFilter | "decoder" | undefined;
  /** Decode them while training, and keep so much of what was decoded. */
  readonly cacheMegabytes?: number | undefined;
  /** Of both sides, or rows and columns, as they are decoded. */
  readonly decodeSize?: number | readonly [number, number] | undefined;
  /** How many each rank decodes at once. */
  readonly decodesAtOnce?: number | undefined;
  /** Of both sides, or rows and columns. */
  readonly size: number | readonly [number, number];
}

/** How images are read while training. */
interface ImageStreamJob extends StreamOptions {
  /** Names of all classes, or how many numbers. Default: those that images to judge by have. */
  readonly classes?: number | readonly string[] | undefined;
}

/** Images of any size that become samples of one, of any kind of files. */
export type DecodedJob = Extract<
  DataJob,
  { readonly kind: "image-folder" | "image-manifest" | "image-parquet" | "webdataset" }
>;

export type DataJob =
  | ({ readonly kind: "mnist" | "fashion-mnist"; readonly folder?: string | undefined } & Images)
  | ({
      readonly kind: "idx";
      readonly folder: string;
      readonly train?: IdxPairJob | undefined;
      readonly test?: IdxPairJob | undefined;
      readonly classes?: number | undefined;
    } & Images)
  | ({ readonly kind: "image-folder"; readonly folder: string } & DecodedImages)
  | ({ readonly kind: "image-manifest"; readonly file: string } & DecodedImages)
  | ({ readonly kind: "image-parquet"; readonly stream?: ImageStreamJob | undefined } & ParquetOptions & DecodedImages)
  | ({ readonly kind: "webdataset"; readonly stream?: ImageStreamJob | undefined } & ShardOptions & DecodedImages)
  | ({ readonly kind: "numpy" } & NumpyOptions & Images)
  | ({ readonly kind: "moby-dick" } & TextJob)
  | ({
      readonly kind: "text";
      readonly testFile?: string | readonly string[] | undefined;
      readonly stream?: StreamOptions | undefined;
    } & Omit<DocumentOptions, "tokenizer"> &
      TextJob)
  | ({
      readonly kind: "tokens";
      readonly file: string;
      readonly testFile?: string | undefined;
      /** Read tokens when a batch needs them. */
      readonly onDisk?: boolean | undefined;
    } & TokenFileOptions &
      TextJob)
  | (ModuleJob & Limits)
  | (ProgramJob & Limits);

export type ModelJob =
  | ModuleJob
  | ProgramJob
  | PretrainedJob
  | { readonly kind: "mlp"; readonly hidden: readonly number[] }
  | {
      readonly kind: "cnn";
      readonly channels: readonly [number, number];
      readonly hidden: number;
      readonly dropout: number;
    }
  | { readonly kind: "resnet18"; readonly channels: readonly [number, number, number, number] }
  | {
      readonly kind: "gpt";
      readonly layers: number;
      readonly heads: number;
      readonly width: number;
      readonly dropout: number;
      readonly experts?: ExpertsJob | undefined;
    };

/** A mixture of experts in place of feed-forward parts. */
export interface ExpertsJob {
  readonly count: number;
  /** Experts that a token goes to. */
  readonly topK: number;
  readonly gate: GateName;
  /** Blocks from one with experts to the next. */
  readonly every: number;
  /** Features inside of an expert. Default: four times the width over topK: flops of the dense model. */
  readonly hidden?: number | undefined;
  readonly activation: "gelu" | "swiglu";
  /** An expert that sees every token. */
  readonly shared: boolean;
  /** Room of an expert, as a multiple of its even share of the tokens; `all` drops none. */
  readonly capacity: number | "all";
  /** Which choices are dropped where an expert has no room. */
  readonly dropOrder: "token" | "choice" | "probability" | "batch-priority" | "chance";
  readonly normalisation: "none" | "before-dropping" | "after-dropping";
  /** How tokens travel; `auto` is planned by measurements before the first step. */
  readonly dispatch: "dense" | "ragged" | "hierarchical" | "duplicate-free" | "auto";
  /** Who does what where ranks along "tensor" share out the hidden width of experts. */
  readonly shards: ShardsName;
  /** Into how many a rank's tokens are cut, to travel while experts work on others; `auto` is planned too. */
  readonly chunks: number | "auto";
  /** The same for what comes back in the backward pass, planned with `auto`. Default: as `chunks`. */
  readonly backwardChunks?: number | "auto" | undefined;
  readonly balanceLoss: number;
  readonly importanceLoadLoss: number;
  readonly zLoss: number;
  /** When experts are placed anew while training. Default: never. */
  readonly placement?: PlacementJob | undefined;
  /** Steps after which it is recorded which experts tokens choose, and how many such steps are kept. Default: never. */
  readonly recordRouting?: { readonly everySteps: number; readonly keep: number } | undefined;
}

/** A way to share each expert out. */
export type ShardSchedule = "baseline" | "split-before-gate" | "split-after-gate";

/** With `auto` the schedule is the one that takes least by measurements before the first step. */
export type ShardsName = "none" | ShardSchedule | "auto";

/** How experts are placed anew while training. */
export interface PlacementJob {
  readonly everySteps: number;
  /** By the loads of experts alone, or by which experts each token chose. */
  readonly planner: "heaviest-first" | "swap";
  /** Whenever a better place is found, or only where the gain until the next time is more than the move takes. */
  readonly when: "always" | "pays";
  /** Most swaps of a layer at a time, with `swap`. */
  readonly swaps: number;
  /** What a step's loads count in their mean once another step has come. */
  readonly loadDecay: number;
}

export type GateName =
  | "switch"
  | "noisy-top-k"
  | "sigmoid"
  | "cosine"
  | "expert-choice"
  | "balancing-bias"
  | "soft"
  | "sinkhorn";

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
      /** Share of the past in the second moments; 1 adds them up. */
      readonly secondMomentDecay: number;
      readonly blockSize: number;
      readonly ridge: number;
      readonly grafting: boolean;
      /** Steps from one derivation of roots to the next. */
      readonly rootsEvery: number;
    } & AfterPreconditioning)
  | {
      readonly kind: "soap";
      readonly beta1: number;
      readonly beta2: number;
      readonly epsilon: number;
      readonly weightDecay: number;
      readonly largestSide: number;
      /** Steps from one derivation of bases to the next. */
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

/** How long a preconditioned gradient may be. */
export interface UpdateSizeJob {
  readonly size: "kl-clip" | "gradient-norm" | "free";
  readonly klClip: number;
}

/** What goes for all that precondition gradients by curvature: momentum and weight decay come after it. */
interface CurvatureMethodJob extends UpdateSizeJob, AfterPreconditioning {
  readonly damping: number;
  /** Share of the past in running means. */
  readonly curvatureDecay: number;
  /** Samples of each rank's part of a batch that statistics are of. Default: all. */
  readonly statisticsSamples?: number | undefined;
}

/** Those that ask for statistics of layers. */
export type CurvatureJob =
  | ({ readonly kind: "eva" | "eva-f" } & CurvatureMethodJob)
  | ({
      readonly kind: "kfac";
      readonly positions: "expand" | "reduce";
      /** Steps from one gathering of factors to the next, and from one inversion to the next. */
      readonly factorEvery: number;
      readonly inverseEvery: number;
      readonly inverse: "cholesky" | "eigen";
      /** Most rows of a block of a factor; all by default. */
      readonly blockSize?: number | undefined;
      readonly form: KfacFormName;
      /** Share of the ranks that precondition each layer; for forms kaisa, pad, dp-hybrid and auto. */
      readonly gradientWorkers: number;
      /** Which factors travel together. Default: planned for spd and auto, else 4 MiB. */
      readonly factorBuckets?: FactorBucketsJob | undefined;
    } & CurvatureMethodJob);

/**
 * In the order in which factors are computed: each by itself, together until so many bytes are there, or so that they
 * arrive soonest by what is measured before the first step.
 */
export type FactorBucketsJob =
  | { readonly kind: "per-factor" }
  | { readonly kind: "fixed-size"; readonly bytes: number }
  | { readonly kind: "planned" };

/** How ranks share the work of K-FAC; `auto` is chosen by measurements. */
export type KfacFormName = "d" | "mpd" | "spd" | "kaisa" | "pad" | "dp" | "dp-hybrid" | "auto";

export interface LearningRateJob {
  readonly peak: number;
  readonly warmupSteps: number;
  readonly decay: "constant" | "cosine" | "step" | "linear" | "polynomial" | "wsd" | "one-cycle";
  /** In place of a decay. */
  readonly schedule?: ModuleJob | ProgramJob | undefined;
  readonly final: number;
  readonly factor: number;
  readonly everySteps?: number | undefined;
  /** Of a polynomial. */
  readonly power?: number | undefined;
  /** Share of the steps after warm-up in which `wsd` falls. Default: 0.2. */
  readonly decayShare?: number | undefined;
  /** Share of the steps in which `one-cycle` rises. Default: 0.3. */
  readonly riseShare?: number | undefined;
}

export type PrecisionJob =
  | { readonly kind: "f32" }
  | { readonly kind: "mixed-bf16" }
  | { readonly kind: "mixed-f16"; readonly initialScale: number; readonly growthInterval: number };
