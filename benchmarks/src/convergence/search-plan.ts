import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import { settingJob } from "./job.ts";
import { type ModelJob, models } from "./models.ts";
import { isCore, type Setting, settingsOf } from "./settings.ts";

/** Training run of a model with a setting at one learning rate, evaluated on samples held out from training. */
export interface SearchRun extends Run {
  readonly model: ModelJob;
  readonly setting: Setting;
  /** Factor of the learning rate, relative to the middle of the searched range. */
  readonly factor: number;
}

/**
 * Learning-rate factors tried for every setting of every model, including dense settings, around a middle that depends
 * only on model and optimizer. Factors of 3 instead of 2, so that three search runs cover methods whose best rate is
 * far from the best rate of dense training.
 */
export const factors: readonly number[] = [1 / 3, 1, 3];
/** Factors with --quick, which shows only whether the runs complete. */
const quickFactors: readonly number[] = [1];
/** Fraction of the training samples held out to evaluate a search run. The search does not use the test samples. */
export const validationFraction = 0.1;
/** Seed of the search, which no later run of a setting uses. */
const seed = 101;

const validated = (job: JobFile): JobFile =>
  layJobs(job, { seed, data: { ...(job["data"] as JobFile), validationFraction } });

/** Returns the search runs of a compression setting on a model, one per learning rate. */
export const triesOf = (model: ModelJob, setting: Setting, quick: boolean): SearchRun[] =>
  (quick ? quickFactors : factors).map((factor) => {
    const job = validated(layJobs(settingJob(model, setting, factor), quick ? model.quick : {}));
    return {
      name: `${model.name}/${setting.name}/rate-${(job["learningRate"] as { readonly peak: number }).peak}`,
      job,
      core: isCore(model, setting),
      warmUpSteps: 5,
      minutes: quick ? 3 : 30,
      expected: { seconds: quick ? 10 : model.expectedSeconds, prefix: model.name },
      model,
      setting,
      factor,
    };
  });

/** Plans all search runs: every model, all settings that support the model, and every learning rate. */
export const planSearch = ({ quick }: Pick<PlanOptions, "quick">): SearchRun[] =>
  models.flatMap((model) => settingsOf(model).flatMap((setting) => triesOf(model, setting, quick)));
