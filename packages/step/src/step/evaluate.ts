import { batchTree, type EvaluationBatch, type EvaluationOptions, type DataShard } from "@skein/data";
import type { Job } from "@skein/job/node";
import { type Backend, type DeviceArray, jit, type JitOptions } from "@skein/tensor-core";
import { type EvaluationSums, totalSums } from "../evaluation/evaluation-sums.ts";
import { evaluationBatch } from "../evaluation/evaluation-batch.ts";
import type { DeviceState } from "./train-state.ts";
import type { AnyModel, BatchTree } from "../task/task.ts";

/** Parts of the state that evaluation reads. */
export type EvaluatedState = Pick<DeviceState, "params" | "model">;

/**
 * Returns the batch options for this rank's share of the held-out samples. If a model has collectives, all ranks have
 * the same number of batches.
 */
export const evaluationOrder = (
  job: Pick<Job, "evaluation" | "ranks" | "mesh">,
  model: AnyModel,
  count: number,
  part: DataShard,
): EvaluationOptions => ({ ...part, batchSize: evaluationBatch(job, count), evenly: model.sharding !== undefined });

/**
 * Compiles the evaluation of a model. Each rank evaluates its share of the samples; ranks communicate only if the model
 * itself has collectives. The main thread adds the sums of all ranks.
 */
export const makeEvaluation = (
  model: AnyModel,
  backend: Backend,
  options: Pick<JitOptions, "mesh" | "communicators">,
): ((evaluated: EvaluatedState, batches: AsyncIterable<EvaluationBatch>) => Promise<EvaluationSums>) => {
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
