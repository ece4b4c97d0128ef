import { alignColumns } from "../report/align-columns.ts";
import { milliseconds } from "../report/milliseconds.ts";
import type { RangePlot } from "../report/range-plot.ts";
import { shortfallsSection, unsuccessfulRuns } from "../studies/shortfalls-section.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { baseline } from "./methods.ts";
import { shareCells, shareHeader } from "./shares.ts";
import { cycle, timedMethods, type TimesRun } from "./times-plan.ts";
import {
  type ComparedRun,
  compareWithMomentum,
  type OutcomeOf,
  type OverPlaces,
  overPlaces,
  type Place,
  placesOf,
  standingOf,
} from "./times-results.ts";

const mebi = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
const times = (value: number): string => value.toFixed(2);

const plotOf = (name: string, title: string, rows: RangePlot["rows"]): RangePlot => ({
  name,
  title,
  axis: `step time beside ${baseline}, mean of a cycle of ${cycle} steps`,
  scale: "log",
  reference: 1,
  most: 8,
  legend: "marks: medians; filled: as fast as wanted, or nothing is wanted; hollow: slower; strokes: what is wanted",
  rows,
});

const overallPlot = (all: readonly OverPlaces[]): RangePlot =>
  plotOf(
    "all",
    "A step of each optimizer beside one of momentum, over tasks and numbers of ranks",
    all.map(({ method, middle, least, greatest, comparedRuns }) => {
      const missed = comparedRuns.filter((one) => standingOf(one) === "missed").length;
      return {
        label: method.name,
        value: middle,
        low: least,
        high: greatest,
        solid: missed === 0,
        limit: method.most,
        note: `${times(least)} to ${times(greatest)}${method.most === undefined ? "" : `, missed ${missed} of ${comparedRuns.length}`}`,
      };
    }),
  );

const placePlot = ({ title }: Place, comparedRuns: readonly ComparedRun[]): RangePlot =>
  plotOf(
    title.replaceAll(/[, ]+/g, "-"),
    title,
    comparedRuns.flatMap((one) =>
      one.ratio === undefined
        ? []
        : [
            {
              label: one.run.method.name,
              ...one.ratio,
              solid: standingOf(one) !== "missed",
              limit: one.run.method.most,
              note: `${milliseconds(one.seconds.median)} ms, ${mebi(one.figures.peakMemoryBytes)} MiB`,
            },
          ],
    ),
  );

const rangeOf = ({ method, middle, least, greatest }: OverPlaces): string =>
  `${method.name} ${times(middle)} (${times(least)} to ${times(greatest)})`;

const missedOf = (all: readonly OverPlaces[]): ComparedRun[] =>
  all.flatMap(({ comparedRuns }) => comparedRuns.filter((one) => standingOf(one) === "missed"));

const placeOf = ({ run: { task, ranks } }: ComparedRun): string => `${task.name} on ${ranks}`;

/** Returns three sentences that summarize the page. */
const timesSentences = (all: readonly OverPlaces[], runs: readonly TimesRun[]): readonly [string, string, string] => {
  const judged = all.filter(({ method }) => method.most !== undefined);
  const others = all.filter(({ method }) => method.most === undefined);
  const missed = missedOf(judged);
  const numHeld = judged.flatMap(({ comparedRuns }) => comparedRuns).filter((one) => standingOf(one) === "held").length;
  const numWanted = runs.filter(({ kind, method }) => kind === "timed" && method.most !== undefined).length;
  const numOpen = numWanted - numHeld - missed.length;
  const asked = timedMethods
    .flatMap(({ name, most }) => (most === undefined ? [] : [`${name} ${times(most)}`]))
    .join(", ");
  const missedList = missed
    .map((one) => `${one.run.method.name} ${times(one.ratio!.value)} (${placeOf(one)})`)
    .join(", ");
  return [
    `Times a step of ${baseline}, median over tasks and numbers of ranks: ${judged.map(rangeOf).join(", ") || "none is known yet"}.`,
    `Wanted is at most ${asked}: that holds in ${numHeld} of ${numWanted} places${numOpen === 0 ? "" : `, ${numOpen} more are not known`}${missed.length === 0 ? "" : `, and is missed by ${missedList}`}.`,
    `Of the others, of which nothing is wanted: ${others.map(rangeOf).join(", ") || "none is known yet"}.`,
  ];
};

const header = [
  "optimizer",
  "ms per step",
  `beside ${baseline}`,
  "wanted",
  "ms of most steps",
  "peak MiB",
  "memory beside",
  "KiB sent per step",
  "note",
];

const wantedMarks = { held: "held", missed: "**missed**" } as const;

const cellsOf = (one: ComparedRun): string[] => {
  const { run, figures, seconds, ratio, memoryRatio } = one;
  const { most, note } = run.method;
  const standing = standingOf(one);
  return [
    run.method.name,
    `${milliseconds(seconds.median)} ± ${milliseconds(seconds.mad)} (${seconds.n})`,
    ratio === undefined ? "–" : standing === "missed" ? `**${times(ratio.value)}**` : times(ratio.value),
    most === undefined ? "" : `${times(most)}${standing === "open" ? "" : `: ${wantedMarks[standing]}`}`,
    milliseconds(figures.stepSeconds.median),
    mebi(figures.peakMemoryBytes),
    memoryRatio === undefined ? "–" : times(memoryRatio),
    (figures.bytesSentPerStep / 1024).toFixed(1),
    note ?? "",
  ];
};

const placeSection = (place: Place, outcomeOf: OutcomeOf, draw: Draw): string => {
  const comparedRuns = compareWithMomentum(place, outcomeOf);
  if (comparedRuns.length === 0) return `## ${place.title}\n\nNothing was timed yet.`;
  const plot = placePlot(place, comparedRuns);
  return [
    `## ${place.title}`,
    ...(plot.rows.length === 0 ? [] : [draw(plot)]),
    alignColumns([header, ...comparedRuns.map(cellsOf)]),
  ].join("\n\n");
};

const sharesSection = (places: readonly Place[], outcomeOf: OutcomeOf): string => {
  const rows = places.flatMap(({ title, runs }) =>
    runs.flatMap((run): string[][] => {
      const outcome = run.kind === "traced" ? outcomeOf(run) : undefined;
      if (outcome?.kind !== "done" || outcome.stageSeconds === undefined) return [];
      return [[title, run.method.name, ...shareCells(outcome.stageSeconds)]];
    }),
  );
  return rows.length === 0
    ? "No step was traced yet."
    : alignColumns([["place", "optimizer", ...shareHeader], ...rows]);
};

/** Returns a page with a table per task and number of ranks, and the times of the stages of steps. */
export const timesPage = (runs: readonly TimesRun[], resultOf: ResultOf, draw: Draw): string => {
  const outcomes = new Map(runs.map((run) => [run, resultOf(run)?.outcome]));
  const outcomeOf: OutcomeOf = (run) => outcomes.get(run);
  const places = placesOf(runs);
  const all = overPlaces(places.flatMap((place) => compareWithMomentum(place, outcomeOf)));
  const missed = missedOf(all).map(
    (one) =>
      `- ${placeOf(one)}: ${one.run.method.name} takes ${times(one.ratio!.value)} times a step of ${baseline}; at most ${times(one.run.method.most!)} is wanted.`,
  );
  return `${all.length === 0 ? "" : `${draw(overallPlot(all))}\n\n`}${timesSentences(all, runs).join("\n")}

Tasks are those of \`pnpm bench second-order\`, with the same batches, on one rank or shared by four, which are threads with one thread each to compute
with, and share the cores of the machine. What a step learns takes no part in this. Some optimizers do more in one step of ${cycle}: ms per step is the mean over such a cycle of the medians of steps
that do the same, ± the mean of their median absolute deviations, and (n) counts the steps of all takes; ms of most steps is the plain median, which does not
see that one. Beside ${baseline} is the ratio of such means, both of the same minutes. Peak memory is that of the process with all its ranks, Node.js
included. KiB are what the rank sends that sends most.

${places.map((place) => placeSection(place, outcomeOf, draw)).join("\n\n")}

## What a step is spent on

Of a traced cycle of ${cycle} steps, in % of a step, mean of the ranks; recording takes time of its own, so these steps are longer than those above.
Communication is all that a rank's own thread spends on messages: to pack, start, await and unpack them, slower ranks included. Of soap, inverses are the
eigenvectors and orthogonal bases; what else it does with them counts as update, as do the iterations of muon. Rest is what no operator of these is seen in: the next
batch, the mean of losses over ranks, the way from operator to operator.

${sharesSection(places, outcomeOf)}

${shortfallsSection([...missed, ...unsuccessfulRuns(runs, outcomeOf)], runs, outcomeOf)}`;
};
