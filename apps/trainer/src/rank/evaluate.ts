import { batchTree, type Samples } from "@skein/data";
import { type DamagedImage, readEvaluationBatches } from "@skein/data/node";
import { type Backend, type DeviceArray, jit, type JitOptions } from "@skein/tensor-core";
import type { Job } from "../job/job.ts";
import { type EvaluationSums, totalSums } from "./evaluation-sums.ts";
import { numBatchParts } from "../step/mesh.ts";
import type { DeviceState } from "../step/train-state.ts";
import type { AnyModel, BatchTree } from "../modules/task.ts";

/** What is judged of a run. */
export type Learnt = Pick<DeviceState, "params" | "model">;

/**
 * Samples of an evaluation batch: what the job says, but no more than there are, in equal parts; the rest of a batch
 * would be padding, and computed in vain.
 */
export const evaluationBatch = (job: Pick<Job, "evaluation" | "ranks" | "mesh">, count: number): number => {
  const numParts = numBatchParts(job);
  return Math.min(job.evaluation.batch, Math.ceil(count / numParts) * numParts);
};

/**
 * Compile the evaluation of a model. Ranks work on their own parts, together only where the model itself does; the main
 * thread adds the sums up.
 *
 * @param damaged is told of images that others take the places of.
 */
export const makeEvaluation = (
  model: AnyModel,
  backend: Backend,
  options: Pick<JitOptions, "mesh" | "communicators">,
  damaged: (image: DamagedImage) => void,
): ((
  learnt: Learnt,
  samples: Samples,
  shard: { batchSize: number; rank: number; worldSize: number },
) => Promise<EvaluationSums>) => {
  const compiled = jit(
    (params: unknown, modelState: unknown, batch: BatchTree) => model.evaluate(params, modelState, batch),
    backend,
    options,
  );
  const evenly = model.sharding !== undefined;
  const call = compiled as unknown as (...args: unknown[]) => Promise<Readonly<Record<string, DeviceArray>>>;
  return async ({ params, model: own }, samples, shard) => {
    const parts: EvaluationSums[] = [];
    for await (const { batch, mask } of readEvaluationBatches(samples, { ...shard, evenly, damaged })) {
      const part: Record<string, number> = {};
      for (const [name, sum] of Object.entries(await call(params, own, { ...batchTree(batch), mask }))) {
        part[name] = (await backend.download(sum)).item();
        backend.free(sum);
      }
      parts.push(part as Record<string, number> & EvaluationSums);
    }
    return totalSums(parts);
  };
};
