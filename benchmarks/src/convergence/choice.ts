import type { ResultOf } from "../studies/study.ts";
import type { ModelJob } from "./models.ts";
import { type SearchRun, triesOf } from "./search-plan.ts";
import type { Setting } from "./settings.ts";
import { bestOf, type Quality, qualityOf } from "./verdict.ts";

/** A learning rate that was tried, and what came of it on validation samples. */
export interface Try {
  readonly run: SearchRun;
  readonly peak: number;
  /** None where it diverged. */
  readonly quality: Quality | undefined;
}

export interface Choice {
  readonly factor: number;
  readonly tries: readonly Try[];
  /** The least or the greatest of those that were tried: a better one may lie beyond. */
  readonly atEdge: boolean;
}

/** Settings and runs ended by themselves, well or not: what failed otherwise says nothing of a learning rate. */
const isTold = (kind: string | undefined): boolean => kind === "done" || kind === "diverged";

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
  const runs = triesOf(model, setting, quick);
  const outcomes = runs.map((run) => resultOf(run)?.outcome);
  if (!outcomes.every((outcome) => isTold(outcome?.kind))) return undefined;
  const tries = runs.map((run, index): Try => {
    const { peak } = run.job["learningRate"] as { readonly peak: number };
    return { run, peak, quality: qualityOf([outcomes[index]]) };
  });
  const best = bestOf(tries);
  return { factor: best.run.factor, tries, atEdge: tries.length > 1 && [tries[0], tries.at(-1)].includes(best) };
};
