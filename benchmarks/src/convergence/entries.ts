import type { Outcome } from "../studies/outcome.ts";
import type { ResultOf } from "../studies/study.ts";
import type { ModelJob } from "./models.ts";
import { type ConvergenceRun, minSeeds } from "./plan.ts";
import type { Setting } from "./settings.ts";
import { compareQuality, type Quality, qualityOf, type Standing, type Verdict } from "./verdict.ts";

/** Training runs of one model with one compression setting, one run per seed. */
export interface Entry {
  readonly model: ModelJob;
  readonly setting: Setting;
  readonly outcomes: readonly (Outcome | undefined)[];
  /** Whether the setting is a dense baseline, with which compressed settings are compared. */
  readonly isDense: boolean;
  readonly quality: Quality | undefined;
  /**
   * Comparison with the dense runs. Undefined for dense runs, and while the quality of these runs or of the dense runs
   * is unknown.
   */
  readonly verdict: Verdict | undefined;
  /**
   * Result of comparing the setting with dense training. `dense`: the setting is dense training. `not run`: seeds are
   * missing.
   */
  readonly standing: Standing | "dense" | "not run";
}

const denseRunsOf = (run: ConvergenceRun, runs: readonly ConvergenceRun[]): ConvergenceRun[] => {
  const named = (name: string): ConvergenceRun[] =>
    runs.filter(({ model, setting }) => model === run.model && setting.name === name);
  const dense = named(run.setting.comparedWith);
  return dense.length > 0 ? dense : named("identity"); // the model's default optimizer is the compared optimizer
};

/** Groups the runs of a plan by model and compression setting, in plan order. */
export const entriesOf = (runs: readonly ConvergenceRun[], resultOf: ResultOf): Entry[] => {
  const outcomesOf = (some: readonly ConvergenceRun[]): (Outcome | undefined)[] =>
    some.map((run) => resultOf(run)?.outcome);
  return [...Map.groupBy(runs, ({ model, setting }) => `${model.name}/${setting.name}`).values()].map((own): Entry => {
    const { model, setting } = own[0]!;
    const outcomes = outcomesOf(own);
    const [quality, dense] = [qualityOf(outcomes), qualityOf(outcomesOf(denseRunsOf(own[0]!, runs)))];
    const isDense = setting.comparedWith === setting.name;
    const verdict = isDense ? undefined : quality && dense && compareQuality(quality, dense, setting.margin, minSeeds);
    const isBad = outcomes.some((outcome) => outcome !== undefined && outcome.kind !== "done");
    return {
      model,
      setting,
      outcomes,
      isDense,
      quality,
      verdict,
      standing: isBad ? "fails" : isDense ? "dense" : (verdict?.standing ?? "not run"),
    };
  });
};
