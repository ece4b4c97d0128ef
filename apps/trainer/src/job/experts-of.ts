import type { ExpertsJob, Job } from "./job.ts";

/**
 * Features inside of each expert of a GPT: as many as its tokens' flops allow, so that in `topK` of them together as
 * much is computed as in a feed-forward part of the dense model.
 *
 * @param width of a token.
 */
export const hiddenOf = (
  { hidden, activation, topK }: Pick<ExpertsJob, "hidden" | "activation" | "topK">,
  width: number,
): number => hidden ?? Math.ceil((activation === "gelu" ? 4 : 8 / 3) * (width / topK));

/** The experts of a job's model, if it has any that the job file describes. */
export const expertsOf = ({ model }: Pick<Job, "model">): ExpertsJob | undefined =>
  model.kind === "gpt" ? model.experts : undefined;

/** Whether ranks along "tensor" share out the hidden width of experts. */
export const hasShards = ({ mesh, model }: Pick<Job, "mesh" | "model">): boolean =>
  mesh.tensor > 1 && (expertsOf({ model })?.shards ?? "none") !== "none";
