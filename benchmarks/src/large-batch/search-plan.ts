import { triedIn, type Try } from "../convergence/tries.ts";
import { bestOf } from "../convergence/verdict.ts";
import { type JobFile, layJobs } from "../studies/job-file.ts";
import { resultOf as resultIn } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions, ResultOf } from "../studies/study.ts";
import {
  changedSettings,
  type Contestant,
  contestants,
  expectedSeconds,
  firstSettings,
  jobOf,
  quickJob,
  searchSamples,
  type Setting,
  validationFraction,
} from "./contestants.ts";

export const searchName = "large-batch-search";

/** Training run of a method with one setting, evaluated on samples held out from training. */
export interface SearchRun extends Run {
  readonly contestant: Contestant;
  readonly setting: Setting;
}

/** Seed of the search, which no later run of a method uses. */
const searchSeed = 101;

const nameOf = ({ peak, coefficient, ...rest }: Setting): string =>
  [
    `rate-${peak}`,
    ...(coefficient === undefined ? [] : [`coefficient-${coefficient}`]),
    `warm-up-${rest.warmupShare}`,
    `weight-decay-${rest.weightDecay}`,
    `smoothing-${rest.labelSmoothing}`,
    `momentum-${rest.decay}`,
  ].join("/");

const tryOf = (contestant: Contestant, setting: Setting, quick: boolean): SearchRun => {
  const job = jobOf(contestant, setting, searchSamples);
  const data: JobFile = { ...(job["data"] as JobFile), trainSamples: searchSamples, validationFraction };
  return {
    name: `${contestant.name}/${nameOf(setting)}`,
    job: layJobs(job, quick ? quickJob : { data }, { seed: searchSeed }),
    core: contestant.core,
    warmUpSteps: 5,
    minutes: 30,
    expected: { seconds: quick ? 5 : expectedSeconds(searchSamples), prefix: contestant.name },
    contestant,
    setting,
  };
};

/**
 * Returns the search runs of a method. Runs with changes to the best first setting are added only after the first runs
 * are done.
 */
export const triesOf = (contestant: Contestant, quick: boolean, resultOf: ResultOf): SearchRun[] => {
  const settings = firstSettings(contestant);
  const first = (quick ? settings.slice(0, 1) : settings).map((setting) => tryOf(contestant, setting, quick));
  const tried = quick ? undefined : triedIn(first, resultOf);
  if (tried === undefined) return first;
  return [
    ...first,
    ...changedSettings(contestant, bestOf(tried).run.setting).map((setting) => tryOf(contestant, setting, quick)),
  ];
};

export const planSearch = ({ quick, resultsOf }: Pick<PlanOptions, "quick" | "resultsOf">): SearchRun[] => {
  const results = resultsOf(searchName);
  return contestants.flatMap((contestant) => triesOf(contestant, quick, (run) => resultIn(results, run)));
};

/**
 * Returns the best setting of a method and all its search runs, or undefined while the result of a search run is
 * missing.
 */
export const chooseSetting = (
  contestant: Contestant,
  quick: boolean,
  resultOf: ResultOf,
): { readonly best: Try<SearchRun>; readonly tries: readonly Try<SearchRun>[] } | undefined => {
  const tries = triedIn(triesOf(contestant, quick, resultOf), resultOf);
  return tries && { best: bestOf(tries), tries };
};
