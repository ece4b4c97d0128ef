import type { ResultOf } from "../studies/study.ts";
import type { ModelJob } from "./models.ts";
import { type SearchRun, triesOf } from "./search-plan.ts";
import type { Setting } from "./settings.ts";
import { triedIn, type Try } from "./tries.ts";
import { bestOf } from "./verdict.ts";

/** A learning rate that was tried. */
export interface RateTry extends Try<SearchRun> {
  readonly peak: number;
}

export interface Choice {
  readonly factor: number;
  readonly tries: readonly RateTry[];
  /** The least or the greatest of those that were tried: a better one may lie beyond. */
  readonly atEdge: boolean;
}

/**
 * The learning rate that did best on validation samples; the lower one of equals, and the lowest of all where every one
 * diverged.
 *
 * @param resultOf of the search.
 * @returns nothing while one of the tries is missing: all settings have the same number.
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
