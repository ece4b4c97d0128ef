import { layJobs, type JobFile } from "../studies/job-file.ts";
import type { ModelJob } from "./models.ts";
import type { Setting } from "./settings.ts";

const scaled = (job: JobFile, factor: number): JobFile => {
  const { peak, final } = job["learningRate"] as { readonly peak: number; readonly final?: number };
  const times = (rate: number): number => Number((rate * factor).toPrecision(3));
  return layJobs(job, { learningRate: { peak: times(peak), ...(final !== undefined && { final: times(final) }) } });
};

/**
 * Returns the job that trains a model with a compression setting. The learning rate is `factor` times the middle of the
 * searched range.
 */
export const settingJob = (model: ModelJob, setting: Setting, factor: number): JobFile =>
  layJobs(scaled(layJobs(model.job, setting.job ?? {}, setting.jobOf?.[model.name] ?? {}), factor), {
    compression: { ...setting.compression, ...setting.compressionOf?.[model.name] },
  });
