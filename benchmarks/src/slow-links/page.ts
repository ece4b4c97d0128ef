import { alignColumns } from "../report/align-columns.ts";
import type { Outcome } from "../studies/outcome.ts";
import { milliseconds } from "../report/milliseconds.ts";
import type { RangePlot, RangeRow } from "../report/range-plot.ts";
import { shortfallsSection, unsuccessfulRuns } from "../studies/shortfalls-section.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { baseline } from "./methods.ts";
import { orderingRule, orderingsSection } from "../studies/orderings-section.ts";
import { orderings } from "./orderings.ts";
import { isClaimed, type SlowLinksRun } from "./plan.ts";
import { slowLinksSentences } from "./sentences.ts";

const header = [
  "method",
  "ms per step",
  "samples/s",
  `beside ${baseline}`,
  "exposed ms",
  "KiB per step",
  "convergence",
  "note",
];

const labelOf = ({ name, method }: SlowLinksRun): string => {
  const seed = /\/(seed-\d+)$/.exec(name)?.[1];
  return seed === undefined ? method.name : `${method.name}, ${seed}`;
};

const standings: Readonly<Record<SlowLinksRun["standing"], string>> = {
  dense: "dense",
  holds: "holds",
  undecided: "undecided",
  fails: "**fails**",
  "not run": "not validated",
};

/**
 * Returns the note for a run whose method cannot overlap with the forward pass, because clipping needs all gradients
 * before the first update.
 */
const noteOf = ({ job }: SlowLinksRun): string =>
  job["overlap"] === "dear" && job["clipNorm"] !== undefined
    ? "clips by the norm of all gradients: nothing is hidden behind the forward pass"
    : "";

const cells = (run: SlowLinksRun, outcome: Outcome | undefined, base: Outcome | undefined): string[] => {
  const [label, standing] = [labelOf(run), standings[run.standing]];
  if (outcome?.kind !== "done")
    return [
      label,
      "–",
      "–",
      "–",
      "–",
      "–",
      standing,
      outcome === undefined ? "not run" : `${outcome.kind}: ${outcome.reason}`,
    ];
  const { stepSeconds, exposedSeconds, batch, bytesSentPerStep } = outcome;
  return [
    label,
    `${milliseconds(stepSeconds.median)} ± ${milliseconds(stepSeconds.mad)} (${stepSeconds.n})`,
    (batch / stepSeconds.median).toFixed(0),
    base?.kind === "done" ? `${(base.stepSeconds.median / stepSeconds.median).toFixed(2)}×` : "–",
    exposedSeconds === undefined ? "–" : milliseconds(exposedSeconds.median),
    (bytesSentPerStep / 1024).toFixed(1),
    standing,
    noteOf(run),
  ];
};

type OutcomeOf = (run: SlowLinksRun) => Outcome | undefined;

const plotOf = (
  title: string,
  own: readonly SlowLinksRun[],
  outcomeOf: OutcomeOf,
  base: Outcome | undefined,
): RangePlot | undefined => {
  if (base?.kind !== "done") return undefined;
  const rows = own.flatMap((run): RangeRow[] => {
    const outcome = outcomeOf(run);
    if (outcome?.kind !== "done") return [];
    const { stepSeconds, bytesSentPerStep } = outcome;
    const times = (seconds: number): number => base.stepSeconds.median / seconds;
    // A spread as large as the median would extend to a time of zero, so the range ends at a tenth of the median.
    const least = Math.max(stepSeconds.median - stepSeconds.mad, stepSeconds.median / 10);
    return [
      {
        label: labelOf(run),
        value: times(stepSeconds.median),
        low: times(stepSeconds.median + stepSeconds.mad),
        high: times(least),
        solid: isClaimed(run),
        note: `${milliseconds(stepSeconds.median)} ms, ${(bytesSentPerStep / 1024).toFixed(0)} KiB${isClaimed(run) ? "" : `, ${run.standing}`}`,
      },
    ];
  });
  const { network, ranks, model } = own[0]!;
  return {
    name: `${network.name}-${ranks}-${model.name}`,
    title,
    axis: `steps per second beside ${baseline}`,
    scale: "log",
    reference: 1,
    legend:
      "marks: medians, lines: what they waver by; filled: dense, or holds its margin in the convergence study; hollow: no claim rests on it",
    rows,
  };
};

/** Returns a page with a table per network, number of ranks and model. */
export const slowLinksPage = (runs: readonly SlowLinksRun[], resultOf: ResultOf, draw: Draw): string => {
  // Look up each result only once, because the look-up hashes the job.
  const outcomes = new Map(runs.map((run) => [run, resultOf(run)?.outcome]));
  const outcomeOf: OutcomeOf = (run) => outcomes.get(run);
  const groups = [
    ...Map.groupBy(runs, ({ network, ranks, model }) => `${network.title}, ${ranks} ranks: ${model.title}`),
  ].filter(
    ([, own]) => own.some((run) => outcomeOf(run) !== undefined), // omit tables without values
  );
  const section = ([title, own]: (typeof groups)[number]): string => {
    const baseRun = own.find(({ method }) => method.name === baseline);
    const base = baseRun && outcomeOf(baseRun);
    const plot = plotOf(title, own, outcomeOf, base);
    const before = plot === undefined ? [] : [draw(plot), slowLinksSentences(own, outcomeOf, base).join("\n")];
    return [
      `## ${title}`,
      ...before,
      alignColumns([header, ...own.map((run) => cells(run, outcomeOf(run), base))]),
    ].join("\n\n");
  };
  return `Ranks are processes that reach each other by TCP through emulated links; messages, checksums and sums are real, the time that a cable
would take is added. Algorithms are chosen by the emulated links' α and β (\`sumOrder: any\`); lossless coding is off. All ranks share the cores of one
machine, and each rank has a thread that computes and one that communicates. With two cores for each rank that is as on machines of their own; with one, what
communicates takes its time from what computes, so overlap gains less; with less, times of computing are those of a slower machine.
${header[3]} is how many times as fast as \`${baseline}\`, which sends all gradients in one message after the backward pass. Times are medians ± median absolute deviation
(steps) after a warm-up. One run of a job can differ from the next by far more; where a run was
made more than once (n counts the steps of all), they are the median of the medians of its runs, ± half of what lies between those where that is more. Exposed is the
part of a step in which rank 0 waited for a collective instead of computing, slower ranks included. KiB per step are what one rank sends.
Compression, optimizer, learning rate and clipping of each method are those that the convergence study validated on a narrower model of the same kind; its first
steps, in which some methods send more, are left out. The column convergence says how the method did there: no claim and no sentence of this page rests on a
method that does not hold its margin.

${groups.length === 0 ? "Nothing was run yet." : groups.map(section).join("\n\n")}

## What the papers say

How many times as fast the first method is as the second, for ${[...new Set(runs.map(({ model }) => model.name))].join(", ")} in this order. ${orderingRule} ° marks a comparison in which a
method does not hold its margin in the convergence study; it is not counted.

${orderingsSection({ runs, outcomeOf, orderings, isClaimed }, draw)}

${shortfallsSection(unsuccessfulRuns(runs, outcomeOf), runs, outcomeOf)}`;
};
