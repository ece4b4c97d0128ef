import { ArgumentError } from "@skein/tensor-core";
import type { Topology } from "../hardware/hardware.ts";
import {
  checkChoice,
  checkCount,
  checkImagesOnly,
  checkLength,
  checkNames,
  checkTensorParallel,
} from "./configuration-checks.ts";
import { checkShape, type ModelShape, type TransformerShape } from "./model-shape.ts";
import type { Adapters, Projection, QuantizedType } from "./operator.ts";
import { type OptimizerName, optimizers, type Precision, precisions } from "./precision.ts";

/**
 * Values saved for the backward pass: all values (`none`), all values except values inside attention (`selective`), or
 * only the input of each layer (`full`).
 */
export type RecomputationMode = "none" | "selective" | "full";

/**
 * ZeRO stage. Data-parallel ranks shard nothing (0), optimizer states (1), optimizer states and gradients (2), or
 * optimizer states, gradients and weights (3). Source: Rajbhandari et al. 2019, arXiv 1910.02054.
 */
export type ZeroStage = 0 | 1 | 2 | 3;

/**
 * Options for offloading optimizer states to the host's memory, where the host updates the weights. Source: Ren et al.
 * 2021, arXiv 2101.06840 (ZeRO-Offload).
 */
export interface Offload {
  /** Bandwidth between a rank's device and its host in one direction, in bytes per second. */
  readonly linkBytesPerSecond: number;
  /** Memory bandwidth of a host, shared by its ranks, in bytes per second. */
  readonly hostMemoryBytesPerSecond: number;
}

/** Settings of a training estimate. */
export interface TrainingConfiguration {
  readonly task: "training";
  /** Number of sequences or images per rank in one pass. */
  readonly batchPerRank: number;
  /** Number of tokens per sequence. Not allowed for image models. Default: the model's context length. */
  readonly sequenceLength?: number | undefined;
  /** Number of passes whose gradients are accumulated before each update. Default: 1. */
  readonly accumulation?: number | undefined;
  /** Training precision. Default: mixed-bf16. */
  readonly precision?: Precision | undefined;
  /** Optimizer, which determines the state size and the work of an update. Default: adam. */
  readonly optimizer?: OptimizerName | undefined;
  /** ZeRO stage: the values that data-parallel ranks shard. Default: 0. */
  readonly zeroStage?: ZeroStage | undefined;
  /** Values that the backward pass recomputes instead of reading saved values. Default: none. */
  readonly recomputation?: RecomputationMode | undefined;
  /**
   * Whether to use FlashAttention. Default: true. This option and all options after it, except `offload`, are allowed
   * only for transformers.
   */
  readonly flashAttention?: boolean | undefined;
  /** Number of ranks that share each layer. Default: 1. */
  readonly tensorParallel?: number | undefined;
  /**
   * Storage type of the matrices of layers. Requires adapters, because quantized weights are not trained. Absent: the
   * matrices are not quantized.
   */
  readonly quantized?: QuantizedType | undefined;
  readonly adapters?: Adapters | undefined;
  readonly offload?: Offload | undefined;
}

/** A training configuration with all defaults filled in. */
export interface TrainingPlan {
  readonly batchPerRank: number;
  readonly sequenceLength: number;
  readonly accumulation: number;
  readonly precision: Precision;
  readonly optimizer: OptimizerName;
  readonly zeroStage: ZeroStage;
  readonly recomputation: RecomputationMode;
  readonly flashAttention: boolean;
  readonly tensorParallel: number;
  /** Number of data-parallel ranks, which train on different data. */
  readonly dataParallel: number;
  readonly quantized?: QuantizedType | undefined;
  readonly adapters?: Adapters | undefined;
  readonly offload?: Offload | undefined;
}

const settings: { readonly [name in keyof Required<TrainingConfiguration>]: true } = {
  task: true,
  batchPerRank: true,
  sequenceLength: true,
  accumulation: true,
  precision: true,
  optimizer: true,
  zeroStage: true,
  recomputation: true,
  flashAttention: true,
  tensorParallel: true,
  quantized: true,
  adapters: true,
  offload: true,
};

const projectionsOf = ({ gated }: TransformerShape): readonly Projection[] => [
  "query",
  "key",
  "value",
  "output",
  ...(gated ? ["gate" as const] : []),
  "up",
  "down",
];

const checkAdapters = (shape: TransformerShape, { kind, rank, projections }: Adapters): void => {
  const { name, width } = shape;
  checkChoice("adapters.kind", kind, ["lora", "lora-fa"]);
  checkCount("adapters.rank", rank);
  if (rank > width)
    throw new ArgumentError(
      `adapters.rank is ${rank}, but ${name} has a width of ${width}; choose a rank up to ${width}`,
    );
  if (projections.length === 0)
    throw new ArgumentError("adapters.projections is empty, so nothing would be trained; add a matrix, such as query");
  for (const projection of projections)
    checkChoice(`a projection of the adapters of ${shape.name}`, projection, projectionsOf(shape));
};

const checkOffload = (offload: Offload): void => {
  const { linkBytesPerSecond, hostMemoryBytesPerSecond } = offload;
  for (const [name, value] of Object.entries({ linkBytesPerSecond, hostMemoryBytesPerSecond }))
    if (!(value > 0 && Number.isFinite(value)))
      throw new ArgumentError(
        `offload.${name} is ${value}, but must be a number above 0; PCIe 4.0 ×16, for example, has 32e9 in one direction`,
      );
};

/**
 * Checks a configuration, and fills in its defaults.
 *
 * @throws ArgumentError if a setting contradicts another setting, the model or the number of ranks, or would have no
 * effect.
 */
export const trainingPlan = (
  shape: ModelShape,
  configuration: TrainingConfiguration,
  { ranks }: Topology,
): TrainingPlan => {
  checkShape(shape);
  checkNames("training", configuration, Object.keys(settings));
  checkCount("ranks", ranks);
  const { batchPerRank, accumulation = 1, precision = "mixed-bf16", optimizer = "adam" } = configuration;
  const { zeroStage = 0, recomputation = "none", tensorParallel = 1, flashAttention = true } = configuration;
  const { quantized, adapters, offload } = configuration;
  checkCount("batchPerRank", batchPerRank);
  checkCount("accumulation", accumulation);
  checkChoice("precision", precision, Object.keys(precisions));
  checkChoice("optimizer", optimizer, Object.keys(optimizers));
  checkChoice("zeroStage", zeroStage, [0, 1, 2, 3]);
  checkChoice("recomputation", recomputation, ["none", "selective", "full"]);
  if (offload !== undefined) checkOffload(offload);
  const chosen = {
    batchPerRank,
    accumulation,
    precision,
    optimizer,
    zeroStage,
    recomputation,
    quantized,
    adapters,
    offload,
  };
  if (shape.kind === "residual") {
    const { sequenceLength, flashAttention, tensorParallel } = configuration;
    checkImagesOnly(shape, { sequenceLength, flashAttention, tensorParallel, quantized, adapters });
    if (recomputation === "selective")
      throw new ArgumentError(`recomputation is selective, but ${shape.name} has no attention; use none or full`);
    return { ...chosen, sequenceLength: 1, flashAttention: true, tensorParallel: 1, dataParallel: ranks };
  }
  const { sequenceLength = shape.contextLength } = configuration;
  checkLength(shape, "sequenceLength", sequenceLength);
  checkTensorParallel(shape, tensorParallel, ranks);
  if (adapters !== undefined) checkAdapters(shape, adapters);
  if (quantized !== undefined) {
    checkChoice("quantized", quantized, ["i8", "i4"]);
    if (adapters === undefined)
      throw new ArgumentError(
        `quantized is ${quantized} without adapters, but quantized weights cannot be trained; add adapters, or leave quantized out`,
      );
  }
  return { ...chosen, sequenceLength, flashAttention, tensorParallel, dataParallel: ranks / tensorParallel };
};
