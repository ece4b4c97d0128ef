import type { BucketsJob, CompressionJob, OverlapName, PrioritiesName } from "./exchange-job.ts";
import type { ModuleJob, ProgramJob } from "./module-job.ts";
import type { OptimizerJob, LearningRateJob, PrecisionJob } from "./optimizer-job.ts";

export type * from "./exchange-job.ts";
export type * from "./optimizer-job.ts";
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

/**
 * A checked job: all defaults are filled in, and all rules are satisfied. `job-schema.ts` describes the keys of a job
 * file.
 */
export interface Job {
  readonly name: string;
  readonly seed: number;
  readonly ranks: number;
  /** Number of ranks along each axis of the device mesh. */
  readonly mesh: MeshJob;
  /** ZeRO stage. 1: ranks with equal parameters shard the optimizer state. 0: no sharding. */
  readonly zero: 0 | 1;
  /** Compute backend. `auto` is resolved before a run starts; the job stored by the run contains the result. */
  readonly backend: "auto" | "cpu" | "webgpu";
  /**
   * `auto`: matrix products on the CPU use the BLAS that was built on this machine, if there is one. `off`: no BLAS.
   */
  readonly blas: "auto" | "off";
  /**
   * Number of CPU threads of each rank. Default: the cores of the rank's machine divided among all ranks on that
   * machine.
   */
  readonly threads?: number | undefined;
  readonly precision: PrecisionJob;
  /** Number of samples per step, over all ranks. */
  readonly batch: number;
  /**
   * Gradient accumulation: number of parts of each rank's share of the batch, which are computed one after the other.
   * Default: 1.
   */
  readonly accumulate?: number | undefined;
  /** Exponential moving average of the parameters, used for evaluation and export. Absent: no average. */
  readonly average?: { readonly decay: number } | undefined;
  /**
   * Label smoothing: fraction of the target that the training loss spreads over all classes. Default: the model's
   * value.
   */
  readonly labelSmoothing?: number | undefined;
  /**
   * Patterns of frozen parameters; a pattern that begins with `!` unfreezes parameters. Absent: no frozen parameters.
   */
  readonly freeze?: readonly string[] | undefined;
  /** Learning-rate factors by parameter pattern; the last matching pattern decides. Default: 1. */
  readonly rates?: Readonly<Record<string, number>> | undefined;
  /** Weight-decay factors by parameter pattern. Default: the optimizer's own rule. */
  readonly weightDecays?: Readonly<Record<string, number>> | undefined;
  /** Number of epochs. Exactly one of `epochs` and `steps` is given. */
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
  /** Transport between ranks. */
  readonly transport: TransportName;
  readonly network: NetworkJob;
  /** Order of summation in collectives. `rank`: results have the same bits on every transport and network. */
  readonly sumOrder: "rank" | "any";
  readonly evaluation: EvaluationJob;
  /** User metrics, evaluated in addition to the model's metrics. */
  readonly metrics?: ModuleJob | ProgramJob | undefined;
  /** User callbacks. They do not affect results. */
  readonly callbacks?: ModuleJob | ProgramJob | undefined;
  /**
   * Number of steps between two recordings of histograms of weights and gradients. Histograms do not affect results.
   * Absent: histograms are recorded only on request.
   */
  readonly histograms?: { readonly everySteps: number } | undefined;
  readonly checkpoint: {
    readonly everySteps?: number | undefined;
    readonly keep: number;
    /** Whether to save and keep a checkpoint after each evaluation that is better than all earlier evaluations. */
    readonly best?: boolean | undefined;
  };
  /** Number of steps between two comparisons of the ranks' parameters; 0: no comparisons. */
  readonly replicas: { readonly checkEverySteps: number };
}

/** Intervals of evaluations on held-out samples, and use of their results. */
export interface EvaluationJob {
  readonly batch: number;
  readonly everyEpochs?: number | undefined;
  readonly everySteps?: number | undefined;
  /**
   * Early stopping: number of consecutive evaluations without improvement after which the run ends. Absent: no early
   * stopping.
   */
  readonly stopAfter?: number | undefined;
  /** Metric by which evaluations are compared. Default: the loss, lower is better. */
  readonly compareBy?: { readonly figure: string; readonly better: "lower" | "higher" } | undefined;
  /** Number of held-out samples whose outputs are stored after each evaluation. Absent: none. */
  readonly samples?: number | undefined;
}

/** Device mesh: data × expert × tensor = ranks. */
export interface MeshJob {
  /** Data-parallel degree. Default: ranks / (expert · tensor). */
  readonly data?: number | undefined;
  /** Expert-parallel degree: number of ranks among which the experts of each layer are divided. */
  readonly expert: number;
  /**
   * Number of ranks per level of the hierarchy along `expert`, outermost level first, such as [hosts, ranks per host].
   * Default: one level.
   */
  readonly expertLevels?: readonly number[] | undefined;
  /** Tensor-parallel degree: number of ranks that compute the same samples and shard the matrices of each block. */
  readonly tensor: number;
}

/** Memory settings of a training step. */
export interface MemoryJob {
  readonly recompute: "none" | "auto" | "blocks";
  /** Maximum bytes of intermediate values of a step on each rank, for `recompute: auto`. */
  readonly maxBytes?: number | undefined;
}

export type TransportName = "threads" | "tcp" | "tls" | "mpi";

/** Network settings of connections between processes. They do not affect results. */
export interface NetworkJob {
  /** Number of ranks per process; the ranks of a process run as threads. */
  readonly ranksPerProcess: number;
  /** Address on which a process accepts data connections. */
  readonly listen?: string | undefined;
  /** Folder created by `skein-train certs init`. Absent: a run on one machine creates its certificates itself. */
  readonly certificates?: string | undefined;
  /** Whether connections to other machines without TLS are allowed. */
  readonly insecure: boolean;
  readonly timeoutSeconds: number;
  /** Interval between heartbeats of each process and link, in seconds. */
  readonly heartbeatSeconds?: number | undefined;
  /** Time, in seconds, without data from a process or link after which it is treated as lost. */
  readonly silenceSeconds?: number | undefined;
  /** Time limit for all ranks to join, in seconds. */
  readonly joinSeconds: number;
  readonly socketsPerPair?: number | undefined;
  /** Path of the link measurements written by `skein-train links`. */
  readonly links?: string | undefined;
  /** When to use the lossless codec. */
  readonly codec: "auto" | "always" | "never";
  /** Bytes covered by the checksum: headers and payloads, or headers only. */
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
  /** Selection of validation samples: at random, or the last samples. Default: see `validationSplit`. */
  readonly validationFrom?: "draw" | "end" | undefined;
  readonly trainSamples?: number | undefined;
  readonly testSamples?: number | undefined;
  /** `training`: evaluates on the training samples, as `run --overfit` does. Absent: evaluates on held-out samples. */
  readonly judgeBy?: "training" | undefined;
}

/** Files of images and of their labels. */
interface IdxPairJob {
  readonly images: string;
  readonly labels: string;
}

/** Text data, divided into windows. */
export interface TextJob extends Limits {
  /** Context length in tokens, or in bytes without a tokenizer. */
  readonly window: number;
  readonly testFraction: number;
  /** Path of a tokenizer.json or of its folder; absolute once the job is loaded. Default: each byte is a token. */
  readonly tokenizer?: string | undefined;
}

/** Image preprocessing of a pretrained model, as read from its preprocessor file. */
export interface PreprocessorJob {
  /** Name of the preprocessor file. Absent in jobs of earlier versions, which supported only one name. */
  readonly file?: string | undefined;
  readonly normalise?: NormaliseJob | undefined;
  /** Input size of the model in pixels, [rows, columns]. */
  readonly size?: readonly [number, number] | undefined;
  /** Image size before the center crop, in pixels: the shorter side, or [rows, columns]. */
  readonly resize?: number | readonly [number, number] | undefined;
  readonly resample?: ResamplingFilter | undefined;
}

/** A checkpoint in Hugging Face format. */
export interface PretrainedJob {
  readonly kind: "pretrained";
  /** Path of the checkpoint folder; absolute once the job is loaded. */
  readonly folder: string;
  /** Initial weights. `folder`: the weights in the folder. `none`: random weights for the folder's configuration. */
  readonly weights: "folder" | "none";
  /** `new`: replaces the checkpoint's head with a new head for the classes of the data. Absent: keeps the head. */
  readonly head?: "new" | undefined;
  /** Contents of preprocessor_config.json, if it exists. Set once the job is loaded. */
  readonly preprocessor?: PreprocessorJob | undefined;
  /** Contents of config.json. Set once the job is loaded. */
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** SHA-256 of the files in the folder from which the run starts. Set once the job is loaded. */
  readonly digest?: string | undefined;
}

/** Augmentation of training images. */
export interface AugmentJob {
  /** Maximum random shift in each direction, in pixels. */
  readonly crop: number;
  /** Whether images are flipped left to right with probability 1/2. */
  readonly flip: boolean;
  /** Random crop, resized to the image size. Absent: the whole image. */
  readonly resizedCrop?: ResizedCrop | undefined;
  /** Color jitter. Absent: no jitter. */
  readonly jitter?: ColourJitter | undefined;
}

/** Means and standard deviations of image channels: one value per channel, or a single value for all channels. */
export interface NormaliseJob {
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** Options that apply to all kinds of image data. */
interface Images extends Limits {
  readonly augment?: AugmentJob | undefined;
  readonly normalise?: NormaliseJob | undefined;
}

/** Options of images that are decoded and resized to one size. */
interface DecodedImages extends Images, Omit<ImageOptions, "size" | "from" | "fit" | "resample"> {
  /** Method of fitting images to `size`. Default: cover, or as the pretrained model specifies. */
  readonly fit?: Decoding["fit"] | undefined;
  /**
   * Resampling filter; `decoder`: the decoder's own filter. Default: `decoder`, or as the pretrained model specifies.
   */
  readonly resample?: ResamplingFilter | "decoder" | undefined;
  /** Maximum size of the cache of decoded images in megabytes. If set, images are decoded during training. */
  readonly cacheMegabytes?: number | undefined;
  /** Size in pixels to which images are decoded: one number for both sides, or [rows, columns]. */
  readonly decodeSize?: number | readonly [number, number] | undefined;
  /** Maximum number of images that each rank decodes concurrently. */
  readonly decodesAtOnce?: number | undefined;
  /** Image size of a sample in pixels: one number for both sides, or [rows, columns]. */
  readonly size: number | readonly [number, number];
}

/** Options of images that are streamed during training. */
interface ImageStreamJob extends StreamOptions {
  /** Names of all classes, or number of classes. Default: the classes of the evaluation images. */
  readonly classes?: number | readonly string[] | undefined;
}

/** Data settings of images that are decoded and resized to one size, for any kind of image file. */
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

/** Settings of the mixture of experts that replaces feed-forward layers. */
export interface ExpertsJob {
  readonly count: number;
  /** Number of experts per token. */
  readonly topK: number;
  readonly gate: GateName;
  /** Interval of MoE blocks: every `every`-th block has experts. */
  readonly every: number;
  /** Number of hidden features of each expert. Default: see `hiddenOf`, the flops of the dense model. */
  readonly hidden?: number | undefined;
  readonly activation: "gelu" | "swiglu";
  /** Whether a shared expert processes every token. */
  readonly shared: boolean;
  /** Capacity of an expert, as a multiple of its equal share of the tokens. `all`: no token is dropped. */
  readonly capacity: number | "all";
  /** Order in which an expert with too many tokens accepts them; the remaining tokens are dropped. */
  readonly dropOrder: "token" | "choice" | "probability" | "batch-priority" | "chance";
  readonly normalisation: "none" | "before-dropping" | "after-dropping";
  /** Method of sending tokens to experts. `auto`: planned from measurements before the first step. */
  readonly dispatch: "dense" | "ragged" | "hierarchical" | "duplicate-free" | "auto";
  /** Division of the work on sharded experts among the ranks along "tensor". */
  readonly shards: ShardsName;
  /**
   * Number of chunks into which tokens are split, so that communication overlaps with the computation of experts.
   * `auto`: planned from measurements, like `dispatch`.
   */
  readonly chunks: number | "auto";
  /** Number of chunks in the backward pass. `auto`: planned from measurements. Default: `chunks`. */
  readonly backwardChunks?: number | "auto" | undefined;
  readonly balanceLoss: number;
  readonly importanceLoadLoss: number;
  readonly zLoss: number;
  /** Settings for moving experts between ranks during training. Absent: experts do not move. */
  readonly placement?: PlacementJob | undefined;
  /**
   * `everySteps`: number of steps between two recordings of the routing. `keep`: number of recordings to keep, newest
   * first. Absent: no recording.
   */
  readonly recordRouting?: { readonly everySteps: number; readonly keep: number } | undefined;
}

/** Schedule of the work on sharded experts. */
export type ShardSchedule = "baseline" | "split-before-gate" | "split-after-gate";

/**
 * Schedule, `none` (experts are not sharded), or `auto` (the fastest schedule in measurements before the first step).
 */
export type ShardsName = "none" | ShardSchedule | "auto";

/** Settings for moving experts between ranks during training. */
export interface PlacementJob {
  readonly everySteps: number;
  /** Planner. `heaviest-first` uses only the loads of experts; `swap` uses the experts that each token chose. */
  readonly planner: "heaviest-first" | "swap";
  /**
   * `always`: move if a placement is better. `pays`: move only if the gain until the next placement exceeds the cost of
   * the move.
   */
  readonly when: "always" | "pays";
  /** Maximum number of swaps per layer and placement, for `planner: swap`. */
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
