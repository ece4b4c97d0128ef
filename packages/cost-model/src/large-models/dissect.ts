import type { HardwareFile } from "../hardware/hardware.ts";
import { inferenceAssumptions, trainingAssumptions } from "./assumptions.ts";
import { checkChoice } from "./configuration-checks.ts";
import type { DissectedMemory, DissectedModule, DissectedOperator, Dissection } from "./dissection.ts";
import { estimateInference, largestInferenceBatch } from "./inference.ts";
import { type InferenceConfiguration, inferenceSetting } from "./inference-plan.ts";
import { largestTrainingBatch } from "./largest-batch.ts";
import type { ModelShape } from "./model-shape.ts";
import { partsOf, sumOver } from "./modules.ts";
import type { Operator, Part, PassSetting } from "./operator.ts";
import type { PassName } from "./pass-rows.ts";
import { estimateTraining } from "./training.ts";
import type { TrainingConfiguration } from "./training-configuration.ts";
import { deviceBytes, trainingSetting } from "./training-memory.ts";

type WholePass = DissectedModule["pass"];

const wholeOf = (pass: PassName): WholePass => (pass === "prefill" || pass === "decode" ? pass : "step");

const modulesOf = (parts: readonly Part[], rows: readonly DissectedOperator[]): readonly DissectedModule[] => {
  const stored = new Map(
    parts.flatMap((part) =>
      part.modules.map(
        ({ name, operators }) => [`${part.name}/${name}`, { repeats: part.repeats, operators }] as const,
      ),
    ),
  );
  const groups = Map.groupBy(rows, ({ part, module, pass }) => `${wholeOf(pass)}/${part}/${module}`);
  return [...groups.values()].map((group) => {
    const { part, module, pass, repeats } = group[0]!;
    const sum = (figure: (row: DissectedOperator) => number): number =>
      group.reduce((total, row) => total + figure(row), 0);
    const entry = stored.get(`${part}/${module}`);
    const storedTotal = (figure: (operator: Operator) => number): number =>
      entry === undefined
        ? 0
        : entry.repeats * entry.operators.reduce((total, operator) => total + figure(operator), 0);
    return {
      part,
      repeats,
      module,
      pass: wholeOf(pass),
      seconds: sum(({ seconds }) => seconds),
      share: sum(({ share }) => share),
      flops: sum(({ flops }) => flops),
      bytes: sum(({ bytes }) => bytes),
      boundBy: group.reduce((a, b) => (b.seconds > a.seconds ? b : a)).boundBy,
      parameters: storedTotal(({ trainable, frozen }) => trainable + frozen),
      weightBytes: storedTotal(({ weightBytes }) => weightBytes),
      savedBytes: storedTotal(({ savedBytes }) => savedBytes),
    };
  });
};

const memoryRows = (memory: Readonly<Record<string, number>>): readonly DissectedMemory[] =>
  Object.entries(memory)
    .map(([kind, bytes]) => ({ kind: kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`), bytes }))
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);

const longestFirst = (rows: readonly DissectedOperator[]): readonly DissectedOperator[] =>
  rows.toSorted((a, b) => b.seconds - a.seconds);

/**
 * Returns the fields that training and inference estimates share.
 * @param setting Parameters of one pass on one rank.
 */
const commonFields = (shape: ModelShape, { name, topology, device }: HardwareFile, setting: PassSetting) =>
  ({
    model: shape.name,
    hardware: name,
    ranks: topology.ranks,
    item: shape.kind === "transformer" ? "token" : "image",
    capacityBytes: device.memoryBytes,
    parameters: sumOver(
      partsOf(shape, { ...setting, tensorParallel: 1 }),
      ({ trainable, frozen }) => trainable + frozen,
    ),
  }) as const;

const dissectTraining = (
  shape: ModelShape,
  configuration: TrainingConfiguration,
  hardware: HardwareFile,
): Dissection => {
  const training = estimateTraining(shape, configuration, hardware);
  const { onHost: _, ...onDevice } = training.memory;
  const rows = training.rows.map((row) => ({ ...row, share: row.seconds / training.stepSeconds }));
  return {
    ...commonFields(shape, hardware, trainingSetting(training.plan)),
    task: "training",
    modules: modulesOf(training.parts, rows),
    operators: longestFirst(rows),
    collectives: training.collectives,
    memory: memoryRows(onDevice),
    memoryBytes: deviceBytes(training.memory),
    largestBatch: largestTrainingBatch(shape, configuration, hardware),
    itemsPerSecond: training.itemsPerSecond,
    training,
    assumptions: trainingAssumptions(shape, training.plan, hardware),
  };
};

const dissectInference = (
  shape: ModelShape,
  configuration: InferenceConfiguration,
  hardware: HardwareFile,
): Dissection => {
  const inference = estimateInference(shape, configuration, hardware);
  const { prefill, decode, plan } = inference;
  const rows = inference.rows.map((row) => ({
    ...row,
    share: row.seconds / (row.pass === "decode" ? decode! : prefill).seconds,
  }));
  return {
    ...commonFields(shape, hardware, inferenceSetting(plan, 1, 1)),
    task: "inference",
    modules: modulesOf(inference.parts, rows),
    operators: longestFirst(rows),
    collectives: inference.collectives,
    memory: memoryRows({ ...inference.memory }),
    memoryBytes: Object.values(inference.memory).reduce((sum, bytes) => sum + bytes, 0),
    largestBatch: largestInferenceBatch(shape, configuration, hardware),
    itemsPerSecond: inference.itemsPerSecond,
    inference,
    assumptions: inferenceAssumptions(shape, plan, hardware),
  };
};

/**
 * Estimates time and memory of a large model's training or inference on described hardware, by module and by operator.
 * The model does not need to fit this machine.
 *
 * @throws ArgumentError if the shape or the configuration is invalid.
 * @example
 * ```ts
 * const configuration = { task: "training", batchPerRank: 1 } as const;
 * const { modules, parameters } = dissect(modelNamed("llama-2-7b"), configuration, shippedHardware[0]!);
 * console.log(modules.length > 0, parameters); // true 6738415616
 * ```
 */
export const dissect = (
  shape: ModelShape,
  configuration: TrainingConfiguration | InferenceConfiguration,
  hardware: HardwareFile,
): Dissection => {
  checkChoice("task", configuration.task, ["training", "inference"]);
  return configuration.task === "training"
    ? dissectTraining(shape, configuration, hardware)
    : dissectInference(shape, configuration, hardware);
};
