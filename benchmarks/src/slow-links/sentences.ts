import type { Figures, Outcome } from "../studies/outcome.ts";
import { isClaimed, type SlowLinksRun } from "./plan.ts";

interface Done {
  readonly run: SlowLinksRun;
  readonly figures: Figures;
}

const fastestOf = (done: readonly Done[]): Done | undefined =>
  done.length === 0
    ? undefined
    : done.reduce((so, next) => (next.figures.stepSeconds.median < so.figures.stepSeconds.median ? next : so));

const bestSentence = (what: string, done: readonly Done[], base: Figures | undefined): string => {
  const best = fastestOf(done);
  if (best === undefined) return `Nothing can be said of ${what}.`;
  const { median } = best.figures.stepSeconds;
  const comparison =
    base === undefined ? "" : `, ${(base.stepSeconds.median / median).toFixed(2)} times as fast as bsp`;
  return `Of ${what}, ${best.run.method.name} is fastest: ${(1000 * median).toPrecision(3)} ms per step${comparison}.`;
};

const waitSentence = (base: Figures | undefined): string => {
  if (base?.exposedSeconds === undefined) return "What bsp waits for its messages is not known.";
  const share = base.exposedSeconds.median / base.stepSeconds.median;
  const most = share < 1 ? `${(1 / (1 - share)).toFixed(2)} times as fast` : "without a bound";
  return `Dense training in one message (bsp) waits for ${(100 * share).toFixed(0)} % of a step: what hides or saves all of that is ${most}.`;
};

/**
 * Returns three sentences that summarize a table, without methods that missed their margin in the convergence study.
 */
export const slowLinksSentences = (
  runs: readonly SlowLinksRun[],
  outcomeOf: (run: SlowLinksRun) => Outcome | undefined,
  base: Outcome | undefined,
): readonly [string, string, string] => {
  const done = runs.flatMap((run): Done[] => {
    const outcome = outcomeOf(run);
    return outcome?.kind === "done" ? [{ run, figures: outcome }] : [];
  });
  const baseFigures = base?.kind === "done" ? base : undefined;
  const compressed = done.filter(({ run }) => run.standing !== "dense");
  return [
    waitSentence(baseFigures),
    bestSentence(
      "methods that send dense gradients",
      done.filter(({ run }) => run.standing === "dense"),
      baseFigures,
    ),
    bestSentence(
      `${compressed.length} methods that compress, as far as they hold their margin (${compressed.filter(({ run }) => isClaimed(run)).length})`,
      compressed.filter(({ run }) => isClaimed(run)),
      baseFigures,
    ),
  ];
};
