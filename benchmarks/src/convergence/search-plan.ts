import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import { settingJob } from "./job.ts";
import { type ModelJob, models } from "./models.ts";
import { isCore, type Setting, settingsOf } from "./settings.ts";

/** A model trained with a setting at one learning rate, judged by samples held out from training. */
export interface SearchRun extends Run {
  readonly model: ModelJob;
  readonly setting: Setting;
  /** Factor of the learning rate, relative to the middle of the searched range. */
  readonly factor: number;
}

/**
 * Learning-rate factors tried for every setting of every model, including dense settings, around a middle that depends
 * only on model and optimizer. Factors of three, because with halves three tries would not reach far enough for methods
 * that need another rate than dense training.
 */
export const factors: readonly number[] = [1 / 3, 1, 3];
/** Factors with --quick, which shows only whether the runs run. */
const quickFactors: readonly number[] = [1];
/** Fraction of the training samples that a try is judged by. The search does not use the test samples. */
export const validationFraction = 0.1;
/** A seed that no later run of a setting uses. */
const seed = 101;

const validated = (job: JobFile): JobFile =>
  layJobs(job, { seed, data: { ...(job["data"] as JobFile), validationFraction } });

/** The tries of a setting on a model. */
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

/** Every try of every setting on every model that the setting is made for. */
export const planSearch = ({ quick }: Pick<PlanOptions, "quick">): SearchRun[] =>
  models.flatMap((model) => settingsOf(model).flatMap((setting) => triesOf(model, setting, quick)));
