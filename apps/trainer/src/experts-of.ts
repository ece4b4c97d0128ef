import type { ExpertsJob, Job } from "./job.ts";

/** The experts of a job's model, if it has any that the job file describes. */
export const expertsOf = ({ model }: Pick<Job, "model">): ExpertsJob | undefined =>
  model.kind === "gpt" ? model.experts : undefined;
