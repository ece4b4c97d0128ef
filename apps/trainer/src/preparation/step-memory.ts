import type { DeviceFacts } from "@skein/gpu-kernels";
import { graphCost } from "@skein/tensor-core/backend";
import { buildModel } from "./build-model.ts";
import type { MemoryJob } from "../job/job.ts";
import { modelOf } from "../modules/traced-model.ts";
import { taskOf } from "../task/task.ts";
import type { Prepared } from "./prepare.ts";
import { prepareStep } from "./prepared-step.ts";
import { formatBytes } from "../run-files/summary.ts";

/** What the intermediates of a step take on each rank, and what it costs to keep no more of them. */
export interface StepMemory {
  readonly recompute: MemoryJob["recompute"];
  readonly bytes: number;
  readonly flops: number;
  /** The same step with everything kept. */
  readonly keepingAll: { readonly bytes: number; readonly flops: number };
}

/**
 * Plan the step of a job as it is, and without recomputation, on the CPU or on a device.
 *
 * @throws ConfigError where `memory.maxBytes` cannot be met.
 */
export const stepMemoryOf = async (prepared: Prepared, device?: DeviceFacts): Promise<StepMemory> => {
  const { job, data, traced, given } = prepared;
  const measure = (one: Prepared): { readonly bytes: number; readonly flops: number } => {
    const compiled = prepareStep(one, device, { alone: true });
    const { graph } = one.job.accumulate === undefined ? compiled : prepareStep(one, device);
    return { bytes: compiled.plan.workspaceBytes, flops: graphCost(graph).flops };
  };
  const own = measure(prepared);
  const { recompute } = job.memory;
  if (recompute === "none") return { recompute, ...own, keepingAll: own };
  const plain = { ...job, memory: { recompute: "none" } } as const;
  const model = await buildModel(plain, taskOf(data), {
    given: traced && modelOf(traced),
    program: given?.parts,
  });
  return { recompute, ...own, keepingAll: measure({ ...prepared, job: plain, model }) };
};

/** What a step keeps, and what it does to keep no more: a line for people. */
export const memoryLine = ({ recompute, bytes, flops, keepingAll }: StepMemory): string =>
  recompute === "none"
    ? `intermediates of a step take ${formatBytes(bytes)} on each rank (${bytes} bytes); memory: {recompute: auto, maxBytes: …} computes some again to keep less`
    : `intermediates of a step take ${formatBytes(bytes)} on each rank, ${formatBytes(keepingAll.bytes)} without recompute: ${recompute}, which adds ${((100 * (flops - keepingAll.flops)) / keepingAll.flops).toFixed(1)} % of flops`;
