import { type Job, numBatchParts } from "@skein/job/node";

/**
 * Returns the number of samples in an evaluation batch: `evaluation.batch` of the job, or `count` if smaller, rounded
 * up to a multiple of the number of ranks with different samples. Padding rows of a batch are masked.
 */
export const evaluationBatch = (job: Pick<Job, "evaluation" | "ranks" | "mesh">, count: number): number => {
  const numParts = numBatchParts(job);
  return Math.ceil(Math.min(job.evaluation.batch, count) / numParts) * numParts;
};
