import { layJobs } from "../studies/job-file.ts";
import { resultOf } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import { chooseRate } from "./choice.ts";
import { settingJob } from "./job.ts";
import { type ModelJob, models } from "./models.ts";
import { isCore, type Setting, settingsOf } from "./settings.ts";

/** A model trained with a setting. */
export interface ConvergenceRun extends Run {
  readonly model: ModelJob;
  readonly setting: Setting;
  readonly seed: number;
}

/** Names of the studies, as on the command line. */
export const searchName = "search";
export const convergenceName = "convergence";
/** How many seeds a claim rests on. */
export const minSeeds = 3;

const lacksSearch = (model: ModelJob, setting: Setting, quick: boolean): string =>
  `its learning rate has not been sought as it is defined now; first run pnpm bench ${searchName}${quick ? " --quick" : ""}, for this row alone with --only ${model.name}/${setting.name}`;

/**
 * A setting with what the search has chosen for it: the one source of what is trained here and timed over slow links.
 */
export const chosenJob = (
  model: ModelJob,
  setting: Setting,
  { quick, resultsOf }: Pick<PlanOptions, "quick" | "resultsOf">,
): { readonly job: Run["job"]; readonly lacks: string | undefined } => {
  const sought = resultsOf(searchName);
  const choice = chooseRate(model, setting, quick, (run) => resultOf(sought, run));
  // Without a choice the middle stands in the job, so that it can be checked; it is not run.
  return {
    job: settingJob(model, setting, choice?.factor ?? 1),
    lacks: choice === undefined ? lacksSearch(model, setting, quick) : undefined,
  };
};

/**
 * Every model with every setting that is made for it, model by model, dense first. Judged on the test samples, which
 * the search has not seen.
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
