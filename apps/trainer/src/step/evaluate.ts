import { batchTree, type EvaluationBatch, type EvaluationOptions, type Shard } from "@skein/data";
import { type Backend, type DeviceArray, jit, type JitOptions } from "@skein/tensor-core";
import type { Job } from "../job/job.ts";
import { type EvaluationSums, totalSums } from "../evaluation/evaluation-sums.ts";
import { evaluationBatch } from "../evaluation/evaluation-batch.ts";
import type { DeviceState } from "./train-state.ts";
import type { AnyModel, BatchTree } from "../task/task.ts";

/** What is judged of a run. */
export type Learnt = Pick<DeviceState, "params" | "model">;

/** Which part of held-out samples a rank judges. Where a model has collectives in it, all have as many batches. */
export const evaluationOrder = (
  job: Pick<Job, "evaluation" | "ranks" | "mesh">,
  model: AnyModel,
  count: number,
  part: Shard,
): EvaluationOptions => ({ ...part, batchSize: evaluationBatch(job, count), evenly: model.sharding !== undefined });

/**
 * Compile the evaluation of a model. Ranks work on their own parts, together only where the model itself does; the main
 * thread adds the sums up.
 */
export const makeEvaluation = (
  model: AnyModel,
  backend: Backend,
  options: Pick<JitOptions, "mesh" | "communicators">,
): ((learnt: Learnt, batches: AsyncIterable<EvaluationBatch>) => Promise<EvaluationSums>) => {
  const compiled = jit(
    (params: unknown, modelState: unknown, batch: BatchTree) => model.evaluate(params, modelState, batch),
    backend,
    options,
  );
  const call = compiled as unknown as (...args: unknown[]) => Promise<Readonly<Record<string, DeviceArray>>>;
  return async ({ params, model: own }, batches) => {
    const parts: EvaluationSums[] = [];
    for await (const { batch, mask } of batches) {
      const part: [string, number][] = [];
      for (const [name, sum] of Object.entries(await call(params, own, { ...batchTree(batch), mask }))) {
        part.push([name, (await backend.download(sum)).item()]);
        backend.free(sum);
      }
      parts.push(Object.fromEntries(part) as Record<string, number> & EvaluationSums);
    }
    return totalSums(parts);
  };
};
