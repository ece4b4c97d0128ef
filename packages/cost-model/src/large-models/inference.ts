import type { HardwareFile } from "../hardware/hardware.ts";
import { kernelPricer } from "../pricing/kernel-price.ts";
import {
  type InferenceConfiguration,
  inferenceMemory,
  type InferenceMemory,
  inferencePlan,
  type InferencePlan,
  inferenceSetting,
} from "./inference-plan.ts";
import { largestBatch, type LargestBatch } from "./largest-batch.ts";
import type { ModelShape } from "./model-shape.ts";
import { partsOf } from "./modules.ts";
import type { Part } from "./operator.ts";
import { type OperatorRow, type PassName, passRows } from "./pass-rows.ts";
import { axisPrices, type AxisPrices } from "./rank-groups.ts";
import type { CollectiveRow } from "./training-communication.ts";

/** A pass of inference: over the prompts, or over one generated token per sequence. */
export interface InferencePass {
  readonly pass: PassName;
  readonly seconds: number;
  readonly flops: number;
  readonly bytes: number;
  /** Fraction of the pass's time spent in memory-bound kernels, 0 to 1. */
  readonly memoryBoundShare: number;
  readonly communicationSeconds: number;
}

/** Estimated time and memory of inference. */
export interface InferenceEstimate {
  readonly plan: InferencePlan;
  readonly parts: readonly Part[];
  readonly rows: readonly OperatorRow[];
  readonly collectives: readonly CollectiveRow[];
  readonly memory: InferenceMemory;
  readonly prefill: InferencePass;
  /** Decode pass after half of the output has been generated. Absent if at most one token is generated. */
  readonly decode?: InferencePass | undefined;
  readonly secondsToFirstToken: number;
  readonly secondsPerOutputToken?: number | undefined;
  /** Seconds for a batch, from the prompt to the last output token. */
  readonly secondsPerBatch: number;
  /** Throughput over all replicas: generated tokens, or images, per second. */
  readonly itemsPerSecond: number;
}

const tensorRow = (pass: PassName, parts: readonly Part[], prices: AxisPrices): CollectiveRow | undefined => {
  const layer = parts.find(({ recomputable }) => recomputable);
  if (prices.ranks === 1 || layer === undefined) return undefined;
  const calls = 2 * layer.repeats;
  const common = {
    name: `layer values, ${pass}`,
    kind: "all-reduce",
    axis: "tensor",
    ranks: prices.ranks,
    calls,
  } as const;
  return {
    ...common,
    bytes: calls * layer.inputBytes,
    seconds: calls * prices.secondsOf("all-reduce", layer.inputBytes),
  };
};

const passOf = (
  pass: PassName,
  rows: readonly OperatorRow[],
  communication: CollectiveRow | undefined,
): InferencePass => {
  const sum = (figure: (row: OperatorRow) => number): number => rows.reduce((total, row) => total + figure(row), 0);
  const communicationSeconds = communication?.seconds ?? 0;
  const seconds = sum((row) => row.seconds) + communicationSeconds;
  return {
    pass,
    seconds,
    flops: sum(({ flops }) => flops),
    bytes: sum(({ bytes }) => bytes),
    memoryBoundShare: sum((row) => (row.boundBy === "bytes" ? row.seconds : 0)) / seconds,
    communicationSeconds,
  };
};

/**
 * Estimates a batch of inference on described hardware: all prompts in one pass, which produces the first output token,
 * then one pass per further output token. Later passes attend to the cached keys and values. Replicas do not
 * communicate.
 *
 * Cost: O(operators), plus the choice of all-reduce algorithms.
 *
 * @throws ArgumentError if the configuration is invalid.
 * @example
 * ```ts
 * const configuration = { task: "inference", batch: 1, promptTokens: 100, outputTokens: 20 } as const;
 * const { secondsToFirstToken, secondsPerBatch } = estimateInference(
 *   modelNamed("llama-2-7b"), configuration, shippedHardware[0]!,
 * );
 * console.log(secondsToFirstToken < secondsPerBatch); // true
 * ```
 */
export const estimateInference = (
  shape: ModelShape,
  configuration: InferenceConfiguration,
  hardware: HardwareFile,
): InferenceEstimate => {
  const plan = inferencePlan(shape, configuration, hardware.topology.ranks);
  const { promptTokens, outputTokens, batch, replicas } = plan;
  const { tensor } = axisPrices(hardware, plan.tensorParallel);
  const priceOf = kernelPricer(hardware.device);
  const price = (name: PassName, parts: readonly Part[]) => {
    const rows = passRows(priceOf, parts, name, 1, ({ forward }) => [forward]);
    const communication = tensorRow(name, parts, tensor);
    return { rows, communication, pass: passOf(name, rows, communication) };
  };
  const parts = partsOf(shape, inferenceSetting(plan, promptTokens, promptTokens));
  const prefill = price("prefill", parts);
  // The prefill produces the first token. The passes of later tokens attend to promptTokens + 1 up to promptTokens +
  // outputTokens − 1 tokens.
  const generated = outputTokens - 1;
  const decode =
    generated > 0
      ? price("decode", partsOf(shape, inferenceSetting(plan, 1, promptTokens + (generated + 1) / 2)))
      : undefined;
  const secondsPerBatch = prefill.pass.seconds + generated * (decode?.pass.seconds ?? 0);
  return {
    plan,
    parts,
    rows: [...prefill.rows, ...(decode?.rows ?? [])],
    collectives: [prefill, decode].flatMap((of) => of?.communication ?? []),
    memory: inferenceMemory(shape, plan),
    prefill: prefill.pass,
    decode: decode?.pass,
    secondsToFirstToken: prefill.pass.seconds,
    secondsPerOutputToken: decode?.pass.seconds,
    secondsPerBatch,
    itemsPerSecond: (replicas * batch * Math.max(1, outputTokens)) / secondsPerBatch,
  };
};

/**
 * Finds the largest batch of a replica that fits into memory.
 *
 * @throws ArgumentError if the configuration is invalid.
 * @example
 * ```ts
 * const configuration = { task: "inference", promptTokens: 100, outputTokens: 20, weights: "i4" } as const;
 * console.log(largestInferenceBatch(modelNamed("llama-2-7b"), configuration, shippedHardware[0]!).batch >= 0); // true
 * ```
 */
export const largestInferenceBatch = (
  shape: ModelShape,
  configuration: Omit<InferenceConfiguration, "batch">,
  { device, topology }: HardwareFile,
): LargestBatch => {
  const plan = inferencePlan(shape, { ...configuration, batch: 1 }, topology.ranks);
  const bytesOf = (batch: number): number =>
    Object.values(inferenceMemory(shape, { ...plan, batch })).reduce((sum, bytes) => sum + bytes, 0);
  return largestBatch(bytesOf, device.memoryBytes);
};
