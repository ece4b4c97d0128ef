import { triedIn, type Try } from "../convergence/tries.ts";
import { bestOf } from "../convergence/verdict.ts";
import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions, ResultOf } from "../studies/study.ts";
import { type Contestant, contestants, expectedSeconds, jobOf, quickJob } from "./contestants.ts";

export const searchName = "moe-search";

/** Training run of a variant at one learning rate, evaluated on samples held out from training. */
export interface SearchRun extends Run {
  readonly contestant: Contestant;
  readonly peak: number;
}

const peaks: readonly number[] = [0.004, 0.008, 0.016];
export const validationFraction = 0.1;
/** Seed of the search, which no later run of a variant uses. */
const searchSeed = 101;

/** Returns the search runs of a variant. All variants get the same number of search runs. */
export const triesOf = (contestant: Contestant, quick: boolean): SearchRun[] =>
  (quick ? peaks.slice(0, 1) : peaks).map((peak) => {
    const job = jobOf(contestant, peak);
    const data = { ...(job["data"] as JobFile), validationFraction };
    return {
      name: `${contestant.name}/rate-${peak}`,
      job: layJobs(job, quick ? quickJob : { data }, { seed: searchSeed }),
      core: true,
      warmUpSteps: 5,
      minutes: 20,
      expected: { seconds: quick ? 5 : expectedSeconds, prefix: contestant.name },
      contestant,
      peak,
    };
  });

export const planSearch = ({ quick }: Pick<PlanOptions, "quick">): SearchRun[] =>
  contestants.flatMap((contestant) => triesOf(contestant, quick));

/**
 * Returns the best learning rate of a variant and all its search runs, or undefined while the result of a search run is
 * missing.
 */
export const chooseRate = (
  contestant: Contestant,
  quick: boolean,
  resultOf: ResultOf,
): { readonly best: Try<SearchRun>; readonly tries: readonly Try<SearchRun>[] } | undefined => {
  const tries = triedIn(triesOf(contestant, quick), resultOf);
  return tries && { best: bestOf(tries), tries };
};
