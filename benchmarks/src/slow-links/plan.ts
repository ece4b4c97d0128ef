import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import { type EmulatedNetwork, linkFileOf, networkJob, networks } from "./links.ts";
import { type Method, methods } from "./methods.ts";
import { type SpeedModel, speedModels } from "./models.ts";
import { type Validated, validatedBy } from "./validated.ts";

/** Short training run of a model with an exchange method over an emulated network. */
export interface SlowLinksRun extends Run {
  readonly network: EmulatedNetwork;
  readonly ranks: number;
  readonly model: SpeedModel;
  readonly method: Method;
  /**
   * Result of the convergence study for the method's compression setting. Claims use only runs with result `dense` or
   * `holds`.
   */
  readonly standing: Validated["standing"];
}

/** Whether claims may use the run's speed, because the method reaches the quality of dense training. */
export const isClaimed = ({ standing }: SlowLinksRun): boolean => standing === "dense" || standing === "holds";

const defaultWarmUp = 5;

const stepsOf = (
  { warmUpSteps = defaultWarmUp }: Method,
  { countedSteps }: EmulatedNetwork,
  quick: boolean,
): { readonly steps: number; readonly warmUpSteps: number } =>
  quick ? { steps: 4, warmUpSteps: 1 } : { steps: warmUpSteps + countedSteps, warmUpSteps };

/** Plans every network, number of ranks, model and method. */
export const planSlowLinks = (options: PlanOptions): SlowLinksRun[] => {
  const { quick, seeds } = options;
  const validated = validatedBy(options);
  const jobOf = (
    network: EmulatedNetwork,
    ranks: number,
    model: SpeedModel,
    method: Method,
    setting: JobFile,
  ): JobFile =>
    layJobs(
      {
        name: "slow-links",
        ranks,
        backend: "cpu",
        batch: model.batchPerRank * ranks,
        steps: stepsOf(method, network, quick).steps,
        evaluation: { batch: 4 * ranks },
      },
      model.job,
      setting,
      networkJob(network),
      method.job,
    );
  return networks.flatMap((network) =>
    network.ranks.flatMap((ranks) =>
      speedModels.flatMap((model) =>
        methods
          .filter((method) => method.ranks?.includes(ranks) ?? true)
          .flatMap((method) => {
            const { job: setting, lacks, standing, core } = validated(model.validatedAs, method.setting ?? "identity");
            const job = jobOf(network, ranks, model, method, setting);
            const prefix = `${network.name}/${ranks}-ranks/${model.name}`;
            return seeds.map(
              (seed): SlowLinksRun => ({
                name: `${prefix}/${method.name}${seeds.length > 1 ? `/seed-${seed}` : ""}`,
                job: layJobs(job, { seed }),
                files: { "links.json": linkFileOf(network, ranks) },
                core: network.coreRanks.includes(ranks) && core,
                warmUpSteps: stepsOf(method, network, quick).warmUpSteps,
                minutes: quick ? 2 : 10,
                expected: { seconds: quick ? 5 : network.expectedSeconds * (ranks > 4 ? 2 : 1), prefix },
                ...(lacks !== undefined && { lacks }),
                network,
                ranks,
                model,
                method,
                standing,
              }),
            );
          }),
      ),
    ),
  );
};
