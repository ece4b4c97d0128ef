import type { Model } from "@skein/models";
import type { Job } from "./job.ts";

/**
 * Whether the model of a job can continue from cached keys and values, see `TextModel`. In a separate file, because a
 * rank needs only this function, and its thread starts faster if it loads fewer modules.
 */
export const supportsKeyValueCache = (job: Pick<Job, "model">, model: Model): boolean =>
  model.experts === undefined && (job.model.kind === "gpt" || job.model.kind === "pretrained");
