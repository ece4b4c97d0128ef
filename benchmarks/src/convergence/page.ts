import { alignColumns } from "../report/align-columns.ts";
import type { Outcome } from "../studies/outcome.ts";
import type { ResultOf } from "../studies/study.ts";
import type { ConvergenceRun } from "./plan.ts";
import { compareQuality, type Quality, qualityOf, type Verdict } from "./verdict.ts";

/** A setting on a model: all its seeds. */
interface Entry {
  readonly runs: readonly ConvergenceRun[];
  readonly outcomes: readonly (Outcome | undefined)[];
  readonly quality: Quality | undefined;
  readonly verdict: Verdict | undefined;
}

const header = ["compression", "held out", "worse than dense by", "allowed", "", "KiB per step", "× less", "ms per step", "note"];

const number = (value: number, unit: Quality["unit"]): string => (unit === "%" ? value.toFixed(2) : value.toFixed(3));

const formatQuality = (quality: Quality | undefined): string => {
  if (quality === undefined) return "–";
  const { mean, range, unit, seeds } = quality;
  return `${number(mean, unit)} ${unit}${seeds > 1 ? ` (${seeds} seeds, range ${number(range, unit)})` : ""}`;
};

/** Why there is no figure, of the first seed that has none. */
const trouble = ({ outcomes }: Entry): string | undefined => {
  for (const outcome of outcomes) if (outcome !== undefined && outcome.kind !== "done") return `${outcome.kind}: ${outcome.reason}`;
  return outcomes.includes(undefined) ? "not run" : undefined;
};

const besideOf = ({ setting, model }: ConvergenceRun, runs: readonly ConvergenceRun[]): ConvergenceRun[] => {
  const named = (name: string): ConvergenceRun[] => runs.filter((run) => run.model === model && run.setting.name === name);
  const beside = named(setting.beside);
  return beside.length > 0 ? beside : named("identity"); // a model whose own optimizer is that one
};

const cells = (entry: Entry): string[] => {
  const { setting } = entry.runs[0]!;
  const { quality, verdict, outcomes } = entry;
  const first = outcomes.find((outcome) => outcome?.kind === "done");
  const unit = quality?.unit ?? "%";
  const isDense = setting.beside === setting.name;
  return [
    setting.name,
    formatQuality(quality),
    isDense || verdict === undefined ? "–" : number(verdict.worseBy, unit),
    isDense || verdict === undefined ? "–" : number(verdict.margin, unit),
    isDense || verdict === undefined ? "" : verdict.holds ? "holds" : "**fails**",
    first === undefined ? "–" : (first.bytesSentPerStep / 1024).toFixed(1),
    first === undefined ? "–" : (first.denseBytesPerStep / first.bytesSentPerStep).toFixed(1),
    first === undefined ? "–" : `${(1000 * first.stepSeconds.median).toFixed(1)} ± ${(1000 * first.stepSeconds.mad).toFixed(1)}`,
    [trouble(entry), setting.beside === "identity" ? undefined : `beside ${setting.beside}`, setting.why]
      .filter((part) => part !== undefined)
      .join("; "),
  ];
};

const shortfall = (entry: Entry): string | undefined => {
  const { name } = entry.runs[0]!;
  const short = name.slice(0, name.lastIndexOf("/"));
  const reason = trouble(entry);
  if (reason !== undefined) return reason === "not run" ? undefined : `- ${short}: ${reason}.`;
  const { verdict, quality } = entry;
  if (quality === undefined || verdict === undefined || verdict.holds) return undefined;
  const unit = quality.unit === "%" ? "points" : "bits";
  return `- ${short}: worse by ${number(verdict.worseBy, quality.unit)} ${unit}, allowed ${number(verdict.margin, quality.unit)}.`;
};

/** A table per model, and what fell short. */
export const convergencePage = (runs: readonly ConvergenceRun[], resultOf: ResultOf): string => {
  const outcomesOf = (some: readonly ConvergenceRun[]): (Outcome | undefined)[] => some.map((run) => resultOf(run)?.outcome);
  const entryOf = (some: readonly ConvergenceRun[]): Entry => {
    const outcomes = outcomesOf(some);
    const [quality, dense] = [qualityOf(outcomes), qualityOf(outcomesOf(besideOf(some[0]!, runs)))];
    const verdict = quality && dense && compareQuality(quality, dense, some[0]!.setting.margin);
    return { runs: some, outcomes, quality, verdict };
  };
  const perModel = [...Map.groupBy(runs, ({ model }) => model)].map(([model, own]) => ({
    model,
    entries: [...Map.groupBy(own, ({ setting }) => setting).values()].map(entryOf),
  }));
  const missed = perModel.flatMap(({ entries }) => entries.flatMap((entry) => shortfall(entry) ?? []));
  const numMissing = runs.filter((run) => resultOf(run) === undefined).length;
  return `Four ranks over threads train each model once per compression and seed, all from the same weights and in the same order of samples. Held out is the
share of right answers, or bits per byte, at the end. Margins were written down before; settings that differ from the model's were found by a few single
runs. KiB per step are what one rank sends, × less is a dense ring all-reduce of the gradients over that; both count all that travels, batch
statistics too. Times are medians ± median absolute deviation, one rank per core, whatever else the machine did: to compare times, see the slow links.

${perModel.map(({ model, entries }) => `## ${model.title}\n\n${alignColumns([header, ...entries.map(cells)])}\n`).join("\n")}
## What fell short

${missed.length === 0 ? "Nothing that was run." : missed.join("\n")}
${numMissing === 0 ? "" : `\nNot run: ${numMissing} of ${runs.length}.\n`}`;
};
