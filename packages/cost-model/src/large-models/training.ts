import type { HardwareFile } from "../hardware/hardware.ts";
import { peakFlops } from "../hardware/roofline.ts";
import { kernelPricer, type KernelPricer } from "../pricing/kernel-price.ts";
import type { ModelShape } from "./model-shape.ts";
import { partsOf, passWork, sumOver } from "./modules.ts";
import type { Operator, Part } from "./operator.ts";
import { type OperatorRow, partSeconds, passRows } from "./pass-rows.ts";
import { optimizers, precisions, stateBytes } from "./precision.ts";
import { axisPrices } from "./rank-groups.ts";
import { type CollectiveRow, dataCommunication, type PartSeconds, tensorCalls } from "./training-communication.ts";
import { type TrainingConfiguration, type TrainingPlan, trainingPlan } from "./training-configuration.ts";
import { trainingMemory, type TrainingMemory, trainingSetting } from "./training-memory.ts";

/** Estimated time and memory of a training step. */
export interface TrainingEstimate {
  readonly plan: TrainingPlan;
  readonly parts: readonly Part[];
  /** Operator times of forward, recomputation, backward and update: totals over the accumulated batches of a step. */
  readonly rows: readonly OperatorRow[];
  readonly collectives: readonly CollectiveRow[];
  readonly memory: TrainingMemory;
  /** Seconds of a step: computation, exposed communication, and transfers between device and host. */
  readonly stepSeconds: number;
  readonly computeSeconds: number;
  readonly exposedSeconds: number;
  /**
   * Seconds to send gradients to the host, update the weights on the host, and send the weights back; 0 without
   * offload.
   */
  readonly offloadSeconds: number;
  /** Number of tokens, or images, per step over all ranks. */
  readonly itemsPerStep: number;
  readonly itemsPerSecond: number;
  /** Flops of forward and backward passes on one rank, without recomputation. */
  readonly flops: number;
  /** Flops of recomputation on one rank. */
  readonly recomputedFlops: number;
  /** Model flops utilization, 0 to 1: flops / (step seconds · peak rate for the operand type of products). */
  readonly modelFlopsUtilization: number;
}

/** Whether a plan recomputes an operator's forward pass. */
const recomputes = (plan: TrainingPlan, part: Part, { remade }: Operator): boolean =>
  part.recomputable && (plan.recomputation === "full" || (plan.recomputation === "selective" && remade));

/** Returns the number of parameters that one rank updates, and the bytes read and written per updated parameter. */
const updateOf = (plan: TrainingPlan, parts: readonly Part[]): { readonly count: number; readonly bytes: number } => {
  const { gradient, weight, master } = precisions[plan.precision];
  const trainable = sumOver(parts, (operator) => operator.trainable);
  return {
    count: plan.zeroStage >= 1 ? trainable / plan.dataParallel : trainable,
    bytes: gradient + 2 * stateBytes(plan.precision, plan.optimizer) + (master > 0 ? weight : 2 * weight),
  };
};

const updateRow = (
  priceOf: KernelPricer,
  plan: TrainingPlan,
  { count, bytes }: ReturnType<typeof updateOf>,
): OperatorRow => {
  const work = { flops: count * optimizers[plan.optimizer].flops, bytes: count * bytes };
  const name = plan.optimizer;
  const common = {
    part: "optimizer",
    repeats: 1,
    module: "update",
    name,
    operator: name,
    pass: "update",
    calls: 1,
  } as const;
  const { seconds, boundBy } = priceOf(name, work, "f32");
  return { ...common, ...work, seconds, boundBy };
};

const offloadSecondsOf = (
  plan: TrainingPlan,
  { topology }: HardwareFile,
  { count, bytes }: ReturnType<typeof updateOf>,
): number => {
  if (plan.offload === undefined) return 0;
  const { linkBytesPerSecond, hostMemoryBytesPerSecond } = plan.offload;
  const { gradient, weight } = precisions[plan.precision];
  const onHost = Math.min(topology.ranks, topology.ranksPerHost);
  return (count * (gradient + weight)) / linkBytesPerSecond + (onHost * count * bytes) / hostMemoryBytesPerSecond;
};

/**
 * Estimates a training step of a model on described hardware: time by operator and collective, memory by category.
 *
 *     step = accumulation · (forward + recomputation + backward) + exposed communication + update
 *
 * Cost: O(operators + layers), plus one algorithm selection per kind of collective.
 *
 * @throws ArgumentError if the configuration is invalid.
 * @example
 * ```ts
 * const configuration = { task: "training", batchPerRank: 1, zeroStage: 2 } as const;
 * console.log(estimateTraining(modelNamed("llama-2-7b"), configuration, shippedHardware[0]!).itemsPerStep); // 8192
 * ```
 */
export const estimateTraining = (
  shape: ModelShape,
  configuration: TrainingConfiguration,
  hardware: HardwareFile,
): TrainingEstimate => {
  const { device } = hardware;
  const plan = trainingPlan(shape, configuration, hardware.topology);
  const parts = partsOf(shape, trainingSetting(plan));
  const { data, tensor } = axisPrices(hardware, plan.tensorParallel);
  const { accumulation } = plan;
  const priceOf = kernelPricer(device);

  const forward = ({ forward }: Operator) => [forward];
  const recomputed = (part: Part) => (operator: Operator) =>
    recomputes(plan, part, operator) ? [operator.forward] : [];
  const backward = ({ backward }: Operator) => backward;
  const update = updateOf(plan, parts);
  const rows = [
    ...passRows(priceOf, parts, "forward", accumulation, forward),
    ...parts.flatMap((part) => passRows(priceOf, [part], "recompute", accumulation, recomputed(part))),
    ...passRows(priceOf, parts, "backward", accumulation, backward),
    ...(plan.offload === undefined ? [updateRow(priceOf, plan, update)] : []),
  ];

  const calls = tensorCalls(plan);
  const shared = plan.tensorParallel > 1;
  const layerSeconds = (part: Part): number =>
    shared && part.recomputable ? tensor.secondsOf("all-reduce", part.inputBytes) : 0;
  const times: readonly PartSeconds[] = parts.map((part) => ({
    part,
    forwardSeconds: partSeconds(priceOf, part, forward) + calls.forward * layerSeconds(part),
    backwardSeconds:
      partSeconds(priceOf, part, recomputed(part)) +
      partSeconds(priceOf, part, backward) +
      calls.backward * layerSeconds(part),
  }));
  const tensorRows: readonly CollectiveRow[] = parts
    .filter((part) => shared && part.recomputable)
    .map((part) => {
      const count = accumulation * part.repeats * (calls.forward + calls.backward);
      const common = {
        name: "layer values",
        kind: "all-reduce",
        axis: "tensor",
        ranks: plan.tensorParallel,
        calls: count,
      } as const;
      return { ...common, bytes: count * part.inputBytes, seconds: count * layerSeconds(part) };
    });
  const between = dataCommunication(plan, times, data);

  const computeSeconds = rows.reduce((sum, { seconds }) => sum + seconds, 0);
  const exposedSeconds = between.exposedSeconds + tensorRows.reduce((sum, { seconds }) => sum + seconds, 0);
  const offloadSeconds = offloadSecondsOf(plan, hardware, update);
  const stepSeconds = computeSeconds + exposedSeconds + offloadSeconds;
  const itemsPerStep = plan.batchPerRank * plan.sequenceLength * accumulation * plan.dataParallel;
  const flops = accumulation * (passWork(parts, "forward").flops + passWork(parts, "backward").flops);
  return {
    plan,
    parts,
    rows,
    collectives: [...tensorRows, ...between.collectives],
    memory: trainingMemory(shape, plan),
    stepSeconds,
    computeSeconds,
    exposedSeconds,
    offloadSeconds,
    itemsPerStep,
    itemsPerSecond: itemsPerStep / stepSeconds,
    flops,
    recomputedFlops: rows.filter(({ pass }) => pass === "recompute").reduce((sum, row) => sum + row.flops, 0),
    modelFlopsUtilization: flops / (stepSeconds * peakFlops(device, precisions[plan.precision].type)),
  };
};
