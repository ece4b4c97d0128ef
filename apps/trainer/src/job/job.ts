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

/** A checked job, with all defaults filled in and all rules met. `job-schema.ts` describes the keys of a job file. */
export interface Job {
  readonly name: string;
  readonly seed: number;
  readonly ranks: number;
  /** Number of ranks along each axis of the mesh. */
  readonly mesh: MeshJob;
  /** ZeRO stage: what ranks with the same parameters shard. */
  readonly zero: 0 | 1;
  /** Compute backend. `auto` is resolved before a run starts, and the run's own job contains the result. */
  readonly backend: "auto" | "cpu" | "webgpu";
  /** Whether matrix products on the CPU use the BLAS that was built on this machine, if any. */
  readonly blas: "auto" | "off";
  /** CPU threads of each rank. Default: the cores of its machine divided among all ranks there. */
  readonly threads?: number | undefined;
  readonly precision: PrecisionJob;
  /** Samples per step, over all ranks. */
  readonly batch: number;
  /** Gradient accumulation: number of sequential parts of each rank's share of the batch. Default: 1. */
  readonly accumulate?: number | undefined;
  /** Exponential moving average of the parameters, used for evaluation and export. Default: no average. */
  readonly average?: { readonly decay: number } | undefined;
  /**
   * Label smoothing: share of the target that the training loss spreads over all classes. Default: the model's value.
   */
  readonly labelSmoothing?: number | undefined;
  /** Patterns of frozen parameters; a pattern that begins with `!` unfreezes parameters. Default: nothing is frozen. */
  readonly freeze?: readonly string[] | undefined;
  /** Learning-rate factors by pattern of parameters; the last matching pattern decides. Default: 1. */
  readonly rates?: Readonly<Record<string, number>> | undefined;
  /** Weight-decay factors by pattern of parameters. Default: the optimizer's own rule. */
  readonly weightDecays?: Readonly<Record<string, number>> | undefined;
  /** Exactly one of `epochs` and `steps` is given. */
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
  /** How ranks communicate. */
  readonly transport: TransportName;
  readonly network: NetworkJob;
  /** Order of summation in collectives: `rank` gives the same bits on every transport and network. */
  readonly sumOrder: "rank" | "any";
  readonly evaluation: EvaluationJob;
  /** User metrics, evaluated in addition to the model's own metrics. */
  readonly metrics?: ModuleJob | ProgramJob | undefined;
  /** User callbacks; they do not change results. */
  readonly callbacks?: ModuleJob | ProgramJob | undefined;
  /** Record histograms of weights and gradients at fixed intervals; results do not change. Default: on request only. */
  readonly histograms?: { readonly everySteps: number } | undefined;
  readonly checkpoint: {
    readonly everySteps?: number | undefined;
    readonly keep: number;
    /** Whether to save and keep a checkpoint after each evaluation that is better than all earlier evaluations. */
    readonly best?: boolean | undefined;
  };
  /** Steps between two comparisons of the ranks' parameters; 0: never. */
  readonly replicas: { readonly checkEverySteps: number };
}

/** When a run is evaluated on held-out samples, and how the results are used. */
export interface EvaluationJob {
  readonly batch: number;
  readonly everyEpochs?: number | undefined;
  readonly everySteps?: number | undefined;
  /** Early stopping: number of consecutive evaluations without improvement that ends the run. Default: never. */
  readonly stopAfter?: number | undefined;
  /** Metric that evaluations are compared by. Default: the loss, lower is better. */
  readonly compareBy?: { readonly figure: string; readonly better: "lower" | "higher" } | undefined;
  /** Number of held-out samples whose outputs are shown after each evaluation. Default: no samples. */
  readonly samples?: number | undefined;
}

/** Device mesh: data × expert × tensor = ranks. */
export interface MeshJob {
  /** Data-parallel degree. Default: ranks / (expert · tensor). */
  readonly data?: number | undefined;
  /** Expert-parallel degree: number of ranks that the experts of each layer are divided among. */
  readonly expert: number;
  /**
   * Hierarchy of the ranks along `expert`, outermost level first, such as [hosts, ranks per host]. Default: one level.
   */
  readonly expertLevels?: readonly number[] | undefined;
  /** Tensor-parallel degree: number of ranks that process the same samples and shard the matrices of each block. */
  readonly tensor: number;
}

/** Memory of a training step. */
export interface MemoryJob {
  readonly recompute: "none" | "auto" | "blocks";
  /** With `auto`: maximum bytes of intermediate values of a step, on each rank. */
  readonly maxBytes?: number | undefined;
}

export type TransportName = "threads" | "tcp" | "tls" | "mpi";

/** Network between processes; does not affect the results. */
export interface NetworkJob {
  /** Number of ranks per process; ranks of a process are threads. */
  readonly ranksPerProcess: number;
  /** Address on which a process accepts data connections. */
  readonly listen?: string | undefined;
  /** Folder created by `skein-train certs init`. Absent: a run on one machine creates its own certificates. */
  readonly certificates?: string | undefined;
  /** Whether connections to other machines without TLS are allowed. */
  readonly insecure: boolean;
  readonly timeoutSeconds: number;
  /** Interval between heartbeats of each process and link, in seconds. */
  readonly heartbeatSeconds?: number | undefined;
  /** Time without a sign of life after which a process or link counts as lost, in seconds. */
  readonly silenceSeconds?: number | undefined;
  /** Time limit for all ranks to join, in seconds. */
  readonly joinSeconds: number;
  readonly socketsPerPair?: number | undefined;
  /** File of link measurements by `skein-train links`. */
  readonly links?: string | undefined;
  /** When to use the lossless codec. */
  readonly codec: "auto" | "always" | "never";
  /** Data covered by the checksum: headers and payloads, or headers only. */
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
  /** Fraction of the training samples that is held out and replaces the test samples, in (0, 1). */
  readonly validationFraction?: number | undefined;
  /** How validation samples are selected: at random, or the last ones. Default: see `validationSplit`. */
  readonly validationFrom?: "draw" | "end" | undefined;
  readonly trainSamples?: number | undefined;
  readonly testSamples?: number | undefined;
  /** Evaluate on the training samples: `run --overfit`. */
  readonly judgeBy?: "training" | undefined;
}

/** A file of images and a file of their classes. */
interface IdxPairJob {
  readonly images: string;
  readonly labels: string;
}

/** Text data, divided into windows. */
export interface TextJob extends Limits {
  /** Context length in tokens, or in bytes without a tokenizer. */
  readonly window: number;
  readonly testFraction: number;
  /** A tokenizer.json, or its folder; absolute once the job is loaded. Default: each byte is a token. */
  readonly tokenizer?: string | undefined;
}

/** Image preprocessing of a pretrained model, from its preprocessor file. */
export interface PreprocessorJob {
  /** The preprocessor file. Absent in jobs of earlier versions, which knew only one name. */
  readonly file?: string | undefined;
  readonly normalise?: NormaliseJob | undefined;
  /** Size of the model's input, [rows, columns]. */
  readonly size?: readonly [number, number] | undefined;
  /** Size before the center crop: the shorter side, or [rows, columns]. */
  readonly resize?: number | readonly [number, number] | undefined;
  readonly resample?: ResamplingFilter | undefined;
}

/** A checkpoint in Hugging Face's layout. */
export interface PretrainedJob {
  readonly kind: "pretrained";
  /** Absolute once the job is loaded. */
  readonly folder: string;
  /** Initial weights: the folder's, or freshly initialized ones for its configuration. */
  readonly weights: "folder" | "none";
  /** `new`: replace the checkpoint's head with a fresh one for the classes of the data. */
  readonly head?: "new" | undefined;
  /** Contents of preprocessor_config.json, if it exists. Set once the job is loaded. */
  readonly preprocessor?: PreprocessorJob | undefined;
  /** Contents of config.json. Set once the job is loaded. */
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** SHA-256 of the contents of the folder's files that the run starts from. Set once the job is loaded. */
  readonly digest?: string | undefined;
}

/** Augmentation of training images. */
export interface AugmentJob {
  /** Maximum random shift in pixels, in each direction. */
  readonly crop: number;
  /** Whether images are mirrored left to right, with probability 1/2. */
  readonly flip: boolean;
  /** Random crop. Absent: the whole image. */
  readonly resizedCrop?: ResizedCrop | undefined;
  /** Color jitter. Absent: no jitter. */
  readonly jitter?: ColourJitter | undefined;
}

/** Means and standard deviations of the channels of images, or one value for all channels. */
export interface NormaliseJob {
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** Options of all kinds of images. */
interface Images extends Limits {
  readonly augment?: AugmentJob | undefined;
  readonly normalise?: NormaliseJob | undefined;
}

/** Options of images that are decoded and resized to one size. */
interface DecodedImages extends Images, Omit<ImageOptions, "size" | "from" | "fit" | "resample"> {
  /** How images are fitted to `size`. Default: cover, or as the pretrained model specifies. */
  readonly fit?: Decoding["fit"] | undefined;
  /** Resampling filter. Default: `decoder`, the decoder's own filter, or as the pretrained model specifies. */
  readonly resample?: ResamplingFilter | "decoder" | undefined;
  /** Decode images during training, and cache up to this many megabytes of decoded images. */
  readonly cacheMegabytes?: number | undefined;
  /** Size that images are decoded to: one number for both sides, or [rows, columns]. */
  readonly decodeSize?: number | readonly [number, number] | undefined;
  /** Number of images that each rank decodes concurrently. */
  readonly decodesAtOnce?: number | undefined;
  /** Size of samples: one number for both sides, or [rows, columns]. */
  readonly size: number | readonly [number, number];
}

/** Options of images that are streamed during training. */
interface ImageStreamJob extends StreamOptions {
  /** Names of all classes, or the number of classes. Default: the classes of the evaluation images. */
  readonly classes?: number | readonly string[] | undefined;
}

/** Images of any file kind that are decoded and resized to one size. */
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
      /** Whether tokens stay on disk and are read when a batch needs them. */
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

/** Mixture of experts in place of the feed-forward layers. */
export interface ExpertsJob {
  readonly count: number;
  /** Number of experts per token. */
  readonly topK: number;
  readonly gate: GateName;
  /** Every this many blocks, a block has experts. */
  readonly every: number;
  /** Hidden features of each expert. Default: see `hiddenOf`, the flops of the dense model. */
  readonly hidden?: number | undefined;
  readonly activation: "gelu" | "swiglu";
  /** Whether there is a shared expert that processes every token. */
  readonly shared: boolean;
  /** Capacity of an expert, as a multiple of its even share of the tokens; `all`: no token is dropped. */
  readonly capacity: number | "all";
  /** Order in which an over-full expert accepts tokens; the remaining tokens are dropped. */
  readonly dropOrder: "token" | "choice" | "probability" | "batch-priority" | "chance";
  readonly normalisation: "none" | "before-dropping" | "after-dropping";
  /** How tokens are sent to experts; `auto` is planned from measurements before the first step. */
  readonly dispatch: "dense" | "ragged" | "hierarchical" | "duplicate-free" | "auto";
  /** How ranks along "tensor" divide the work of sharded experts. */
  readonly shards: ShardsName;
  /** Number of chunks that tokens are sent in, to overlap communication and experts; `auto` is planned, too. */
  readonly chunks: number | "auto";
  /** Number of chunks in the backward pass; `auto` is planned. Default: same as `chunks`. */
  readonly backwardChunks?: number | "auto" | undefined;
  readonly balanceLoss: number;
  readonly importanceLoadLoss: number;
  readonly zLoss: number;
  /** Placement of experts during training. Default: experts do not move. */
  readonly placement?: PlacementJob | undefined;
  /** Steps between two recordings of routing, and the number of recorded steps to keep. Default: no recording. */
  readonly recordRouting?: { readonly everySteps: number; readonly keep: number } | undefined;
}

/** A schedule for sharded experts. */
export type ShardSchedule = "baseline" | "split-before-gate" | "split-after-gate";

/** `none`: experts are not sharded; `auto`: the fastest schedule in measurements before the first step. */
export type ShardsName = "none" | ShardSchedule | "auto";

/** How experts move between ranks during training. */
export interface PlacementJob {
  readonly everySteps: number;
  /** Plans from the loads of experts only, or from the experts that each token chose. */
  readonly planner: "heaviest-first" | "swap";
  /**
   * `always`: on a better placement; `pays`: only if its gain until the next placement exceeds the cost of the move.
   */
  readonly when: "always" | "pays";
  /** Maximum number of swaps per layer and placement, with `swap`. */
  readonly swaps: number;
  /** Decay of the running mean of expert loads. */
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
      /** Decay of the second moments; 1: moments are summed. */
      readonly secondMomentDecay: number;
      readonly blockSize: number;
      readonly ridge: number;
      readonly grafting: boolean;
      /** Steps between two computations of the roots. */
      readonly rootsEvery: number;
    } & AfterPreconditioning)
  | {
      readonly kind: "soap";
      readonly beta1: number;
      readonly beta2: number;
      readonly epsilon: number;
      readonly weightDecay: number;
      readonly largestSide: number;
      /** Steps between two computations of the bases. */
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

/** How a preconditioned gradient is scaled. */
export interface UpdateSizeJob {
  readonly size: "kl-clip" | "gradient-norm" | "free";
  readonly klClip: number;
}

/** Options of methods that precondition by curvature; momentum and weight decay follow the preconditioning. */
interface CurvatureMethodJob extends UpdateSizeJob, AfterPreconditioning {
  readonly damping: number;
  /** Decay of the running means of statistics. */
  readonly curvatureDecay: number;
  /** Samples of each rank's share of a batch to gather statistics from. Default: all. */
  readonly statisticsSamples?: number | undefined;
}

/** Optimizers that need statistics of layers. */
export type CurvatureJob =
  | ({ readonly kind: "eva" | "eva-f" } & CurvatureMethodJob)
  | ({
      readonly kind: "kfac";
      readonly positions: "expand" | "reduce";
      /** Steps between two updates of factors. */
      readonly factorEvery: number;
      /** Steps between two inversions. */
      readonly inverseEvery: number;
      readonly inverse: "cholesky" | "eigen";
      /** Maximum number of rows of a diagonal block of a factor. Default: all rows. */
      readonly blockSize?: number | undefined;
      readonly form: KfacFormName;
      /** Share of the ranks that precondition each layer; for forms kaisa, pad, dp-hybrid and auto. */
      readonly gradientWorkers: number;
      /** How factors are grouped into messages. Default: planned for forms spd and auto, otherwise 4 MiB. */
      readonly factorBuckets?: FactorBucketsJob | undefined;
    } & CurvatureMethodJob);

/**
 * How factors are grouped into messages, in the order of their computation: each factor by itself, grouped up to a
 * number of bytes, or planned from measurements before the first step so that the factors arrive earliest.
 */
export type FactorBucketsJob =
  | { readonly kind: "per-factor" }
  | { readonly kind: "fixed-size"; readonly bytes: number }
  | { readonly kind: "planned" };

/** How ranks divide the work of K-FAC; `auto` is chosen by measurements. */
export type KfacFormName = "d" | "mpd" | "spd" | "kaisa" | "pad" | "dp" | "dp-hybrid" | "auto";

export interface LearningRateJob {
  readonly peak: number;
  readonly warmupSteps: number;
  readonly decay: "constant" | "cosine" | "step" | "linear" | "polynomial" | "wsd" | "one-cycle";
  /** User schedule that replaces `decay`. */
  readonly schedule?: ModuleJob | ProgramJob | undefined;
  readonly final: number;
  readonly factor: number;
  readonly everySteps?: number | undefined;
  /** Exponent of `polynomial`. Default: 2. */
  readonly power?: number | undefined;
  /** Share of the steps after the warm-up in which the learning rate decreases, for `wsd`. Default: 0.2. */
  readonly decayShare?: number | undefined;
  /** Share of the steps in which the learning rate increases, for `one-cycle`. Default: 0.3. */
  readonly riseShare?: number | undefined;
}

export type PrecisionJob =
  | { readonly kind: "f32" }
  | { readonly kind: "mixed-bf16" }
  | { readonly kind: "mixed-f16"; readonly initialScale: number; readonly growthInterval: number };
