import { layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import { type EmulatedNetwork, linkFileOf, networkJob, networks } from "./links.ts";
import { type Method, methods } from "./methods.ts";
import { type SpeedModel, speedModels } from "./models.ts";

/** A model trained for a few steps by a method over an emulated network. */
export interface SlowLinksRun extends Run {
  readonly network: EmulatedNetwork;
  readonly ranks: number;
  readonly model: SpeedModel;
  readonly method: Method;
}

const defaultWarmUp = 5;

const stepsOf = (
  { warmUpSteps = defaultWarmUp }: Method,
  { countedSteps }: EmulatedNetwork,
  quick: boolean,
): { readonly steps: number; readonly warmUpSteps: number } =>
  quick ? { steps: 4, warmUpSteps: 1 } : { steps: warmUpSteps + countedSteps, warmUpSteps };

/** Every network, number of ranks, model and method. */
export const planSlowLinks = ({ quick, seeds }: { readonly quick: boolean; readonly seeds: readonly number[] }): SlowLinksRun[] =>
  networks.flatMap((network) =>
    network.ranks.flatMap((ranks) =>
      speedModels.flatMap((model) =>
        methods
          .filter((method) => method.ranks?.includes(ranks) ?? true)
          .flatMap((method) =>
            seeds.map(
              (seed): SlowLinksRun => ({
                name: `${network.name}/${ranks}-ranks/${model.name}/${method.name}${seeds.length > 1 ? `/seed-${seed}` : ""}`,
                job: layJobs(
                  {
                    name: "slow-links",
                    seed,
                    ranks,
                    backend: "cpu",
                    batch: model.batchPerRank * ranks,
                    steps: stepsOf(method, network, quick).steps,
                  },
                  { evaluation: { batch: 4 * ranks }, ...model.job },
                  networkJob(network),
                  method.job,
                ),
                files: { "links.json": linkFileOf(network, ranks) },
                warmUpSteps: stepsOf(method, network, quick).warmUpSteps,
                minutes: quick ? 2 : 10,
                network,
                ranks,
                model,
                method,
              }),
            ),
          ),
      ),
    ),
  );
