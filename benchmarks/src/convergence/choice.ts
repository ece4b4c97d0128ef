import type { ResultOf } from "../studies/study.ts";
import type { ModelJob } from "./models.ts";
import { type SearchRun, triesOf } from "./search-plan.ts";
import type { Setting } from "./settings.ts";
import { triedIn, type Try } from "./tries.ts";
import { bestOf } from "./verdict.ts";

/**
 * Training run of the search at one learning rate, with its result. `peak` is the peak learning rate of the schedule.
 */
export interface RateTry extends Try<SearchRun> {
  readonly peak: number;
}

export interface Choice {
  readonly factor: number;
  readonly tries: readonly RateTry[];
  /** Whether the rate is the lowest or the highest tried rate, so that an untried rate may be better. */
  readonly atEdge: boolean;
}

/**
 * Chooses the learning rate with the best result on validation samples. If several rates have equal results, the lowest
 * of these rates is chosen; if every rate diverged, the lowest rate is chosen.
 *
 * @param resultOf Returns the result of a search run.
 * @returns undefined while a search run is missing, because all settings must have the same number of search runs.
 */
export const chooseRate = (
  model: ModelJob,
  setting: Setting,
  quick: boolean,
  resultOf: ResultOf,
): Choice | undefined => {
  const tries = triedIn(triesOf(model, setting, quick), resultOf)?.map((one): RateTry => {
    const { peak } = one.run.job["learningRate"] as { readonly peak: number };
    return { ...one, peak };
  });
  if (tries === undefined) return undefined;
  const best = bestOf(tries);
  return { factor: best.run.factor, tries, atEdge: tries.length > 1 && [tries[0], tries.at(-1)].includes(best) };
};
