import type { DeviceFacts } from "@skein/gpu-kernels";
import type { MemoryJob } from "@skein/job/node";
import { formatBytes } from "@skein/run-files/node";
import { taskOf } from "@skein/step/node";
import { graphCost } from "@skein/tensor-core/backend";
import { buildModel } from "./build-model.ts";
import type { Prepared } from "./prepared.ts";
import { prepareStep } from "./prepared-step.ts";

/** Memory of the intermediate values of a step on each rank, and the cost of recomputation. */
export interface StepMemory {
  readonly recompute: MemoryJob["recompute"];
  readonly bytes: number;
  readonly flops: number;
  /** Memory and flops of the same step without recomputation. */
  readonly keepingAll: { readonly bytes: number; readonly flops: number };
}

/**
 * Plans the memory of a job's step with and without recomputation, on the CPU or on a device.
 *
 * @throws ConfigError if `memory.maxBytes` cannot be met.
 */
export const stepMemoryOf = async (prepared: Prepared, device?: DeviceFacts): Promise<StepMemory> => {
  const { job, data, given } = prepared;
  const measure = (one: Prepared): { readonly bytes: number; readonly flops: number } => {
    const compiled = prepareStep(one, device, { alone: true });
    const { graph } = one.job.accumulate === undefined ? compiled : prepareStep(one, device);
    return { bytes: compiled.plan.workspaceBytes, flops: graphCost(graph).flops };
  };
  const own = measure(prepared);
  const { recompute } = job.memory;
  if (recompute === "none") return { recompute, ...own, keepingAll: own };
  const plain = { ...job, memory: { recompute: "none" } } as const;
  const model =
    recompute === "blocks" ? await buildModel(plain, taskOf(data), { program: given?.parts }) : prepared.model;
  return { recompute, ...own, keepingAll: measure({ ...prepared, job: plain, model }) };
};

/** Formats a line for the user about the memory of a step, and the cost of recomputation. */
export const memoryLine = ({ recompute, bytes, flops, keepingAll }: StepMemory): string =>
  recompute === "none"
    ? `intermediates of a step take ${formatBytes(bytes)} on each rank (${bytes} bytes); memory: {recompute: auto, maxBytes: …} recomputes some of them to save memory`
    : `intermediates of a step take ${formatBytes(bytes)} on each rank, ${formatBytes(keepingAll.bytes)} without recompute: ${recompute}, which adds ${((100 * (flops - keepingAll.flops)) / keepingAll.flops).toFixed(1)} % of flops`;
