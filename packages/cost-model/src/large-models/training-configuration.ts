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
 * What is kept for the backward pass: all; all but what attention makes inside (`selective`); or only the input of each
 * layer (`full`).
 */
export type Recomputation = "none" | "selective" | "full";

/**
 * What ZeRO shares among data ranks: nothing, optimizer states, gradients too, weights too. Source: Rajbhandari et al.
 * 2019, arXiv 1910.02054.
 */
export type ZeroStage = 0 | 1 | 2 | 3;

/**
 * Optimizer states lie in the host's memory, and the host updates the weights. Source: Ren et al. 2021, arXiv
 * 2101.06840 (ZeRO-Offload).
 */
export interface Offload {
  /** Between a rank's device and its host, one way. */
  readonly linkBytesPerSecond: number;
  /** Of a host; its ranks share it. */
  readonly hostMemoryBytesPerSecond: number;
}

/** How a model is trained. */
export interface TrainingConfiguration {
  readonly task: "training";
  /** Sequences or images of one rank in one pass. */
  readonly batchPerRank: number;
  /** Tokens. Default: the model's context. Images have none. */
  readonly sequenceLength?: number | undefined;
  /** Passes whose gradients are added up before an update. Default: 1. */
  readonly accumulation?: number | undefined;
  /** Default: mixed-bf16. */
  readonly precision?: Precision | undefined;
  /** Default: adam. */
  readonly optimizer?: OptimizerName | undefined;
  /** Default: 0. */
  readonly zeroStage?: ZeroStage | undefined;
  /** Default: none. */
  readonly recomputation?: Recomputation | undefined;
  /** Default: true. Transformers only, as all that follows but `offload`. */
  readonly flashAttention?: boolean | undefined;
  /** Ranks that share each layer. Default: 1. */
  readonly tensorParallel?: number | undefined;
  /** Needs adapters, since quantized weights are not trained. */
  readonly quantized?: QuantizedType | undefined;
  readonly adapters?: Adapters | undefined;
  readonly offload?: Offload | undefined;
}

/** A configuration with all defaults filled in. */
export interface TrainingPlan {
  readonly batchPerRank: number;
  readonly sequenceLength: number;
  readonly accumulation: number;
  readonly precision: Precision;
  readonly optimizer: OptimizerName;
  readonly zeroStage: ZeroStage;
  readonly recomputation: Recomputation;
  readonly flashAttention: boolean;
  readonly tensorParallel: number;
  /** Ranks that see different data. */
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
    throw new ArgumentError(`adapters.rank is ${rank}, but ${name} is ${width} wide; choose a rank below that`);
  if (projections.length === 0)
    throw new ArgumentError("adapters.projections is empty, so nothing would be trained; name a matrix such as query");
  for (const projection of projections)
    checkChoice(`a projection of the adapters of ${shape.name}`, projection, projectionsOf(shape));
};

const checkOffload = (offload: Offload): void => {
  const { linkBytesPerSecond, hostMemoryBytesPerSecond } = offload;
  for (const [name, value] of Object.entries({ linkBytesPerSecond, hostMemoryBytesPerSecond }))
    if (!(value > 0 && Number.isFinite(value)))
      throw new ArgumentError(
        `offload.${name} is ${value}, but it is a number above 0; PCIe 4.0 ×16, for example, has 32e9 one way`,
      );
};

/**
 * Fill in a configuration's defaults after a look whether it can be.
 *
 * @throws ArgumentError for settings that contradict one another, the model or the number of ranks, or that would have
 * no effect.
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
        `quantized is ${quantized} without adapters, but quantized weights cannot be trained; add adapters, or leave it out`,
      );
  }
  return { ...chosen, sequenceLength, flashAttention, tensorParallel, dataParallel: ranks / tensorParallel };
};
