import { layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import { type ModelJob, models } from "./models.ts";
import { type Setting, settings } from "./settings.ts";

/** A model trained with a setting. */
export interface ConvergenceRun extends Run {
  readonly model: ModelJob;
  readonly setting: Setting;
  readonly seed: number;
}

/** Every model with every setting that is made for it, model by model, dense first. */
export const planConvergence = ({ quick, seeds }: { readonly quick: boolean; readonly seeds: readonly number[] }): ConvergenceRun[] =>
  models.flatMap((model) =>
    settings
      .filter(({ leavesOut = [] }) => !leavesOut.includes(model.name))
      .flatMap((setting) =>
        seeds.map(
          (seed): ConvergenceRun => ({
            name: `${model.name}/${setting.name}/seed-${seed}`,
            job: layJobs(model.job, setting.job ?? {}, setting.jobOf?.[model.name] ?? {}, quick ? model.quick : {}, {
              seed,
              compression: { ...setting.compression, ...setting.compressionOf?.[model.name] },
            }),
            warmUpSteps: 5,
            minutes: quick ? 3 : 30,
            model,
            setting,
            seed,
          }),
        ),
      ),
  );
