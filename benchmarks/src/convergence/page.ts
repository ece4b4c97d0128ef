import { alignColumns } from "../report/align-columns.ts";
import type { RangePlot } from "../report/range-plot.ts";
import { shortfallsSection } from "../studies/shortfalls-section.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { type Entry, entriesOf } from "./entries.ts";
import type { ModelJob } from "./models.ts";
import { type ConvergenceRun, minSeeds } from "./plan.ts";
import { factors } from "./search-plan.ts";
import { convergenceSentences } from "./sentences.ts";
import type { Quality } from "./verdict.ts";

const header = [
  "compression",
  "held out",
  "worse than dense by",
  "allowed",
  "",
  "KiB per step",
  "× less",
  "ms per step",
  "rate",
  "note",
];

const number = (value: number, unit: Quality["unit"]): string => (unit === "%" ? value.toFixed(2) : value.toFixed(3));

const formatQuality = (quality: Quality | undefined): string => {
  if (quality === undefined) return "–";
  const { mean, least, greatest, unit, seeds } = quality;
  return `${number(mean, unit)} ${unit}${seeds > 1 ? ` (${number(least, unit)} to ${number(greatest, unit)})` : ", 1 seed"}`;
};

/**
 * Returns the reason why the table has no quality for a setting: the failure of the first seed without a result.
 * Undefined: all seeds have results.
 */
const trouble = ({ outcomes }: Entry): string | undefined => {
  for (const outcome of outcomes)
    if (outcome !== undefined && outcome.kind !== "done") return `${outcome.kind}: ${outcome.reason}`;
  return outcomes.includes(undefined) ? "not run" : undefined;
};

const marks: Readonly<Record<Entry["standing"], string>> = {
  dense: "",
  holds: "holds",
  undecided: "undecided",
  fails: "**fails**",
  "not run": "",
};

const cells = (entry: Entry, rate: string): string[] => {
  const { setting, quality, verdict, outcomes, standing } = entry;
  const first = outcomes.find((outcome) => outcome?.kind === "done");
  const unit = quality?.unit ?? "%";
  return [
    setting.name,
    formatQuality(quality),
    verdict === undefined ? "–" : `${number(verdict.worseBy, unit)} (worst ${number(verdict.worst, unit)})`,
    verdict === undefined ? "–" : number(verdict.margin, unit),
    marks[standing],
    first === undefined ? "–" : (first.bytesSentPerStep / 1024).toFixed(1),
    first === undefined ? "–" : (first.denseBytesPerStep / first.bytesSentPerStep).toFixed(1),
    first === undefined
      ? "–"
      : `${(1000 * first.stepSeconds.median).toFixed(1)} ± ${(1000 * first.stepSeconds.mad).toFixed(1)}`,
    rate,
    [trouble(entry), setting.comparedWith === "identity" ? undefined : `beside ${setting.comparedWith}`, setting.why]
      .filter((part) => part !== undefined)
      .join("; "),
  ];
};

const shortfall = (entry: Entry): string | undefined => {
  const name = `${entry.model.name}/${entry.setting.name}`;
  const reason = trouble(entry);
  if (reason !== undefined) return reason === "not run" ? undefined : `- ${name}: ${reason}.`;
  const { verdict, quality, standing } = entry;
  if (quality === undefined || verdict === undefined || standing === "holds") return undefined;
  const unit = quality.unit === "%" ? "points" : "bits";
  const by = `worse by ${number(verdict.worseBy, quality.unit)} ${unit}, ${number(verdict.worst, quality.unit)} with its worst seed`;
  return `- ${name}: ${standing === "fails" ? "fails" : "undecided"}; ${by}, allowed ${number(verdict.margin, quality.unit)}${
    quality.seeds < minSeeds ? `; ${quality.seeds} of ${minSeeds} seeds` : ""
  }.`;
};

const plotOf = (model: ModelJob, entries: readonly Entry[]): RangePlot | undefined => {
  const rows = entries.flatMap(({ setting, verdict, outcomes, standing }) => {
    const first = outcomes.find((outcome) => outcome?.kind === "done");
    if (verdict === undefined || first === undefined) return [];
    const less = `${(first.denseBytesPerStep / first.bytesSentPerStep).toFixed(1)} × less sent`;
    return [
      {
        label: setting.name,
        value: verdict.worseBy,
        low: verdict.best,
        high: verdict.worst,
        limit: verdict.margin,
        solid: standing === "holds",
        note: `${less}, ${standing}`,
      },
    ];
  });
  if (rows.length === 0) return undefined;
  const unit = entries.find(({ quality }) => quality !== undefined)!.quality!.unit;
  return {
    name: model.name,
    title: model.title,
    axis:
      unit === "%"
        ? "points of held-out accuracy worse than dense training"
        : "bits per byte worse than dense training",
    scale: "linear",
    reference: 0,
    most: 2 * Math.max(...rows.map(({ limit }) => limit)),
    legend:
      "marks: means, lines: all seeds, strokes across: what is allowed; filled where a method holds, an arrow where it is far off",
    rows,
  };
};

/** Returns a page with a plot, three sentences and a table per model, and the settings that missed their margin. */
export const convergencePage = (runs: readonly ConvergenceRun[], resultOf: ResultOf, draw: Draw): string => {
  const rateOf = (entry: Entry): string => {
    const run = runs.find(({ model, setting }) => model === entry.model && setting === entry.setting)!;
    return run.lacks === undefined ? `${(run.job["learningRate"] as { readonly peak: number }).peak}` : "not sought";
  };
  const perModel = [...Map.groupBy(entriesOf(runs, resultOf), ({ model }) => model)];
  const section = ([model, entries]: (typeof perModel)[number]): string => {
    const plot = plotOf(model, entries);
    const before = plot === undefined ? [] : [draw(plot), convergenceSentences(entries).join("\n")];
    return [
      `## ${model.title}`,
      ...before,
      alignColumns([header, ...entries.map((entry) => cells(entry, rateOf(entry)))]),
    ].join("\n\n");
  };
  const missed = perModel.flatMap(([, entries]) => entries.flatMap((entry) => shortfall(entry) ?? []));
  return `Four ranks over threads train each model once per compression and seed, all of a seed from the same weights and in the same order of samples. Held out is
the share of right answers on the test samples, or bits per byte, at the end: mean (least to greatest of the seeds). Worse than dense by compares means;
worst is that of the method's worst seed. A method **holds** where its worst seed is within the margin of the dense runs' mean, over ${minSeeds} seeds at least; it
**fails** where its own mean is not, or where a seed diverged; else it is undecided, and nothing is claimed. Margins were written down before. Learning rates were
sought on samples held back from training, with the same budget for every row, dense ones included: ${factors.length} tries (\`pnpm bench search\`); the test samples were
looked at once, here. KiB per step are what one rank sends, × less is a dense ring all-reduce of the gradients over that; both count all that travels, batch
statistics too. Times are medians ± median absolute deviation of the first seed, one rank per core, whatever else the machine did: to compare times, see the slow
links.

${perModel.map(section).join("\n\n")}

${shortfallsSection(missed, runs, (run) => resultOf(run)?.outcome)}`;
};
