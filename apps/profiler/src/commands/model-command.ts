import {
  dissect,
  type InferenceConfiguration,
  modelNamed,
  type Precision,
  type QuantizedType,
  type RecomputationMode,
  type TrainingConfiguration,
  type ZeroStage,
} from "@skein/cost-model/large-models";
import { exitCodes } from "../errors.ts";
import { dissectionLines } from "../dissection-lines.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { countOf } from "./count-of.ts";
import { writeStdout } from "skein-train/profiling";

export interface ModelCommandOptions {
  readonly hardware: string;
  readonly inference?: boolean;
  readonly batch: string;
  readonly sequence?: string;
  readonly zero: `${ZeroStage}`;
  readonly recompute: RecomputationMode;
  readonly precision?: Precision;
  readonly flash: boolean;
  readonly tensorParallel: string;
  readonly quantized?: QuantizedType;
  readonly lora?: string;
  readonly prompt?: string;
  readonly output?: string;
  readonly json?: boolean;
}

const optional = (option: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : countOf(option, text, 1);

/** Builds the configuration from the command-line options. */
const configurationOf = (options: ModelCommandOptions): TrainingConfiguration | InferenceConfiguration => {
  const { flash: flashAttention, quantized } = options;
  const batch = countOf("batch", options.batch, 1);
  const tensorParallel = countOf("tensor-parallel", options.tensorParallel, 1);
  if (options.inference === true)
    return {
      task: "inference",
      batch,
      promptTokens: optional("prompt", options.prompt),
      outputTokens: optional("output", options.output),
      weights: quantized,
      flashAttention,
      tensorParallel,
    };
  const lora = optional("lora", options.lora);
  return {
    task: "training",
    batchPerRank: batch,
    sequenceLength: optional("sequence", options.sequence),
    precision: options.precision,
    zeroStage: Number(options.zero) as ZeroStage,
    recomputation: options.recompute,
    flashAttention,
    tensorParallel,
    quantized,
    // The LoRA paper adds adapters to the query and value projections.
    adapters: lora === undefined ? undefined : { kind: "lora", rank: lora, projections: ["query", "value"] },
  };
};

/** Implements `skein-profile model`: prints the estimated time and memory of a large model. */
export const modelCommand = (name: string, options: ModelCommandOptions): number => {
  const dissection = dissect(modelNamed(name), configurationOf(options), hardwareOf(options.hardware));
  const lines =
    options.json === true ? [JSON.stringify(dissection)] : dissectionLines(dissection, process.stdout.columns);
  for (const line of lines) writeStdout(`${line}\n`);
  return exitCodes.ok;
};
