import type { ExpertsJob, Job } from "./job.ts";

/**
 * Returns the number of hidden features per expert of a GPT. Default: `topK` experts together need as many flops as the
 * feed-forward layer of the dense model.
 *
 * @param width number of features per token.
 */
export const hiddenOf = (
  { hidden, activation, topK }: Pick<ExpertsJob, "hidden" | "activation" | "topK">,
  width: number,
): number => hidden ?? Math.ceil((activation === "gelu" ? 4 : 8 / 3) * (width / topK));

/** Returns the expert settings of a job's model; undefined unless the job describes experts. */
export const expertsOf = ({ model }: Pick<Job, "model">): ExpertsJob | undefined =>
  model.kind === "gpt" ? model.experts : undefined;

/** Whether ranks along "tensor" shard the hidden features of experts. */
export const hasShards = ({ mesh, model }: Pick<Job, "mesh" | "model">): boolean =>
  mesh.tensor > 1 && (expertsOf({ model })?.shards ?? "none") !== "none";
