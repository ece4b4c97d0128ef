import { layJobs } from "../studies/job-file.ts";
import { resultOf } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import { chooseRate } from "./choice.ts";
import { settingJob } from "./job.ts";
import { type ModelJob, models } from "./models.ts";
import { isCore, type Setting, settingsOf } from "./settings.ts";

/** Training run of a model with a compression setting and a seed. */
export interface ConvergenceRun extends Run {
  readonly model: ModelJob;
  readonly setting: Setting;
  readonly seed: number;
}

/** Names of the studies, as on the command line. */
export const searchName = "search";
export const convergenceName = "convergence";
/** Minimum number of seeds to claim that a method reaches the quality of dense training. */
export const minSeeds = 3;

const lacksSearch = (model: ModelJob, setting: Setting, quick: boolean): string =>
  `its learning rate has not been sought as it is defined now; first run pnpm bench ${searchName}${quick ? " --quick" : ""}, for this row alone with --only ${model.name}/${setting.name}`;

/**
 * Returns the job of a compression setting, with the learning rate that the search chose. This study and the study of
 * slow links use the same job.
 */
export const chosenJob = (
  model: ModelJob,
  setting: Setting,
  { quick, resultsOf }: Pick<PlanOptions, "quick" | "resultsOf">,
): { readonly job: Run["job"]; readonly lacks: string | undefined } => {
  const searched = resultsOf(searchName);
  const choice = chooseRate(model, setting, quick, (run) => resultOf(searched, run));
  // Without a choice the job has the middle rate, so that the job can be checked; such a run does not start.
  return {
    job: settingJob(model, setting, choice?.factor ?? 1),
    lacks: choice === undefined ? lacksSearch(model, setting, quick) : undefined,
  };
};

/**
 * Plans the runs of every model with all settings that support the model; dense settings first. Runs are evaluated on
 * the test samples, which the search does not use.
 */
export const planConvergence = (options: PlanOptions): ConvergenceRun[] =>
  models.flatMap((model) =>
    settingsOf(model).flatMap((setting) => {
      const { job, lacks } = chosenJob(model, setting, options);
      return options.seeds.map(
        (seed): ConvergenceRun => ({
          name: `${model.name}/${setting.name}/seed-${seed}`,
          job: layJobs(job, options.quick ? model.quick : {}, { seed }),
          core: isCore(model, setting),
          warmUpSteps: 5,
          minutes: options.quick ? 3 : 30,
          expected: { seconds: options.quick ? 10 : model.expectedSeconds, prefix: model.name },
          ...(lacks !== undefined && { lacks }),
          model,
          setting,
          seed,
        }),
      );
    }),
  );
