import { type Entry, entriesOf } from "../convergence/entries.ts";
import { models } from "../convergence/models.ts";
import { chosenJob, convergenceName, minSeeds, planConvergence } from "../convergence/plan.ts";
import { isCore, settings } from "../convergence/settings.ts";
import type { JobFile } from "../studies/job-file.ts";
import { resultOf } from "../studies/results-file.ts";
import type { PlanOptions } from "../studies/study.ts";

/** Result of the convergence study for a setting on a model. */
export interface Validated {
  /** Optimizer, learning rate, clipping and compression of the setting, without the compression's warm-up. */
  readonly job: JobFile;
  readonly lacks: string | undefined;
  readonly standing: Entry["standing"];
  /** Whether claims depend on the setting. */
  readonly core: boolean;
}

/**
 * Job keys that a compression setting determines. The other keys depend on the model, its data, and the exchange
 * method.
 */
const settingKeys = ["optimizer", "learningRate", "clipNorm", "compression"] as const;

/** Returns a compression without its warm-up, because a few steps would otherwise time only the warm-up. */
const steady = ({ warmupSteps: _, densityWarmup: __, ...compression }: JobFile): JobFile => compression;

/**
 * Looks up settings and their results in the convergence study.
 *
 * @throws Error if the convergence study does not have the model or the setting.
 */
export const validatedBy = ({
  quick,
  resultsOf,
}: Pick<PlanOptions, "quick" | "resultsOf">): ((modelName: string, settingName: string) => Validated) => {
  const seeds = Array.from({ length: quick ? 1 : minSeeds }, (_, index) => index + 1);
  const results = resultsOf(convergenceName);
  const entries = entriesOf(planConvergence({ quick, seeds, resultsOf }), (run) => resultOf(results, run));
  const make = (modelName: string, settingName: string): Validated => {
    const [model, setting] = [
      models.find(({ name }) => name === modelName),
      settings.find(({ name }) => name === settingName),
    ];
    const entry = entries.find((one) => one.model === model && one.setting === setting);
    if (model === undefined || setting === undefined || entry === undefined)
      throw new Error(
        `convergence has no ${modelName}/${settingName}; name a model and a setting of benchmarks/src/convergence`,
      );
    const { job, lacks } = chosenJob(model, setting, { quick, resultsOf });
    const own = Object.fromEntries(settingKeys.flatMap((key) => (job[key] === undefined ? [] : [[key, job[key]]])));
    return {
      job: { ...own, compression: steady(job["compression"] as JobFile) },
      lacks,
      standing: entry.standing,
      core: isCore(model, setting),
    };
  };
  const made = new Map<string, Validated>();
  return (modelName, settingName) => {
    const key = `${modelName}/${settingName}`;
    const validated = made.get(key) ?? make(modelName, settingName);
    made.set(key, validated);
    return validated;
  };
};
