import { alignColumns } from "../report/align-columns.ts";
import type { Outcome } from "../studies/outcome.ts";
import type { ResultOf } from "../studies/study.ts";
import { baseline } from "./methods.ts";
import { orderingsTable } from "./orderings-page.ts";
import type { SlowLinksRun } from "./plan.ts";

const header = ["method", "ms per step", "samples/s", `beside ${baseline}`, "exposed ms", "KiB per step", "note"];

const milliseconds = (seconds: number): string => (seconds >= 1 ? (1000 * seconds).toFixed(0) : (1000 * seconds).toPrecision(3));

const cells = ({ name, method }: SlowLinksRun, outcome: Outcome | undefined, base: Outcome | undefined): string[] => {
  const seed = /\/(seed-\d+)$/.exec(name)?.[1];
  const label = seed === undefined ? method.name : `${method.name}, ${seed}`;
  if (outcome?.kind !== "done")
    return [label, "–", "–", "–", "–", "–", outcome === undefined ? "not run" : `${outcome.kind}: ${outcome.reason}`];
  const { stepSeconds, exposedSeconds, batch, bytesSentPerStep } = outcome;
  return [
    label,
    `${milliseconds(stepSeconds.median)} ± ${milliseconds(stepSeconds.mad)} (${stepSeconds.n})`,
    (batch / stepSeconds.median).toFixed(0),
    base?.kind === "done" ? `${(base.stepSeconds.median / stepSeconds.median).toFixed(2)}×` : "–",
    exposedSeconds === undefined ? "–" : milliseconds(exposedSeconds.median),
    (bytesSentPerStep / 1024).toFixed(1),
    "",
  ];
};

/** A table per network, number of ranks and model. */
export const slowLinksPage = (runs: readonly SlowLinksRun[], resultOf: ResultOf): string => {
  const outcomeOf = (run: SlowLinksRun): Outcome | undefined => resultOf(run)?.outcome;
  const groups = [...Map.groupBy(runs, ({ network, ranks, model }) => `${network.title}, ${ranks} ranks: ${model.title}`)].filter(
    ([, own]) => own.some((run) => outcomeOf(run) !== undefined), // a table of dashes says nothing
  );
  const table = (own: readonly SlowLinksRun[]): string => {
    const base = own.find(({ method }) => method.name === baseline);
    return alignColumns([header, ...own.map((run) => cells(run, outcomeOf(run), base && outcomeOf(base)))]);
  };
  const bad = runs.flatMap((run) => {
    const outcome = outcomeOf(run);
    return outcome === undefined || outcome.kind === "done" ? [] : [`- ${run.name}: ${outcome.kind}: ${outcome.reason}.`];
  });
  const numMissing = runs.filter((run) => outcomeOf(run) === undefined).length;
  return `Ranks are processes that reach each other by TCP through emulated links; messages, checksums and sums are real, the time that a cable
would take is added. Algorithms are chosen by the emulated links' α and β (\`sumOrder: any\`); lossless coding is off. All ranks share the cores of one
machine. Each rank has a thread that computes and one that communicates: two ranks have four cores for that, as ranks on machines of their own have; of four
ranks, what communicates takes its time from what computes; and of eight, times of computing are those of a slower machine.
${header[3]} is how many times as fast as \`${baseline}\`, which sends all gradients in one message after the backward pass. Times are medians ± median absolute deviation
(steps) after a warm-up. One run of a job can differ from the next by far more; where a run was
made more than once (n counts the steps of all), they are the median of the medians of its runs, ± half of what lies between those where that is more. Exposed is the
part of a step in which rank 0 waited for a collective instead of computing, slower ranks included. KiB per step are what one rank sends.

${groups.length === 0 ? "Nothing was run yet.\n" : groups.map(([title, own]) => `## ${title}\n\n${table(own)}\n`).join("\n")}
## What the papers say

How many times as fast the first method is as the second, for ${[...new Set(runs.map(({ model }) => model.name))].join(", ")} in this order. An ordering holds where the first is faster by more than 3 % and by more than both medians
waver (the sum of their median absolute deviations); = stands where neither is faster by so much, ✗ where the second is.

${orderingsTable(runs, outcomeOf)}

## What fell short

${bad.length === 0 ? "Nothing that was run." : bad.join("\n")}
${numMissing === 0 ? "" : `\nNot run: ${numMissing} of ${runs.length}.\n`}`;
};
