import type { Model } from "@skein/models";
import type { Job } from "./job.ts";

/**
 * Whether the model of a job goes on from keys and values: see `TextModel`. Apart from what opens one, which reads job
 * files: a rank asks only this, and each module that its thread does not read begins its run earlier.
 */
export const goesOnFromKeys = (job: Pick<Job, "model">, model: Model): boolean =>
  model.experts === undefined && (job.model.kind === "gpt" || job.model.kind === "pretrained");
