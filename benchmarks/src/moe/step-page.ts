import { alignColumns } from "../report/align-columns.ts";
import type { RangePlot } from "../report/range-plot.ts";
import type { Figures } from "../studies/outcome.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { flat, sizes } from "./layer-plan.ts";
import { automatic, gpt, type StepGroup, type StepRun, tensorRanks } from "./step-plan.ts";
import { speedRange, spread } from "./step-times.ts";

/**
 * Required maximum ratio of the step time with the plan chosen by `auto` to the step time of the fastest alternative.
 */
const wanted = 1.1;

/** Baseline of each comparison: the alternative with which all other alternatives are compared. */
const bases: Readonly<Record<StepGroup, string>> = { ways: flat, shards: "baseline" };

/** All finished runs of one comparison on one network and number of ranks. */
interface Place {
  readonly group: StepGroup;
  readonly title: string;
  readonly done: readonly { readonly run: StepRun; readonly figures: Figures }[];
}

const placesOf = (runs: readonly StepRun[], resultOf: ResultOf): Place[] =>
  [...Map.groupBy(runs, ({ group, network, ranks }) => [group, network.name, ranks].join())].flatMap(([, own]) => {
    const done = own.flatMap((run) => {
      const outcome = resultOf(run)?.outcome;
      return outcome?.kind === "done" ? [{ run, figures: outcome }] : [];
    });
    const [{ group, network, ranks }] = own as [StepRun];
    return done.length === 0 ? [] : [{ group, title: `${network.title}, ${ranks} ranks`, done }];
  });

const secondsOf = ({ figures }: Place["done"][number]): number => figures.stepSeconds.median;
const times = (value: number): string => `${value.toFixed(2)}×`;

/**
 * Whether a run uses an alternative that is set in the job, and that `auto` could choose as well. `auto` never chooses
 * `none`, because whole experts on each rank take more memory.
 */
const isChoice = ({ run: { choice } }: Place["done"][number]): boolean => choice !== automatic && choice !== "none";

/**
 * Returns the step time with `auto`, divided by the step time of the fastest alternative set in the job. Undefined
 * while either is missing.
 */
const ratioToBest = ({ done }: Place): number | undefined => {
  const chosen = done.find(({ run }) => run.choice === automatic);
  const named = done.filter(isChoice);
  return chosen === undefined || named.length === 0 ? undefined : secondsOf(chosen) / Math.min(...named.map(secondsOf));
};

const tableOf = ({ group, done }: Place): string => {
  const base = done.find(({ run }) => run.choice === bases[group]);
  return alignColumns([
    [group === "ways" ? "way" : "shards", "ms per step", `beside ${bases[group]}`, "MB sent per step and rank"],
    ...done.map((each) => [
      each.run.choice,
      spread(each.figures),
      base === undefined ? "–" : times(secondsOf(base) / secondsOf(each)),
      (each.figures.bytesSentPerStep / 1e6).toFixed(2),
    ]),
  ]);
};

const plotOf = (places: readonly Place[]): RangePlot => ({
  name: "choices",
  title: `Whole steps of a GPT with ${sizes.numExperts} experts, ${sizes.topK} for a token: each choice`,
  axis: "speed beside ragged rows, or beside shards without a split",
  scale: "log",
  reference: 1,
  legend: "marks: medians of steps; filled: what the job planned for itself",
  rows: places.flatMap(({ group, done }) => {
    const base = done.find(({ run }) => run.choice === bases[group]);
    if (base === undefined) return [];
    return done.flatMap((each) => {
      const { run, figures } = each;
      if (run.choice === bases[group]) return [];
      return [
        {
          label: `${run.network.name}, ${run.ranks} ranks, ${group === "ways" ? "" : "shards "}${run.choice}`,
          solid: run.choice === automatic,
          ...speedRange(secondsOf(base) / secondsOf(each), figures),
        },
      ];
    });
  }),
});

/**
 * Describes the fastest alternative set in the job, per network and number of ranks, with its speed relative to the
 * baseline.
 */
const fastest = (places: readonly Place[], group: StepGroup): string =>
  places
    .filter((place) => place.group === group)
    .flatMap(({ title, done }) => {
      const base = done.find(({ run }) => run.choice === bases[group]);
      const [best] = done.filter(isChoice).toSorted((a, b) => secondsOf(a) - secondsOf(b));
      return base === undefined || best === undefined
        ? []
        : [`${title}: ${best.run.choice}, ${times(secondsOf(base) / secondsOf(best))}`];
    })
    .join("; ") || "not known yet";

/** Returns three sentences that summarize the page. */
const stepSentences = (places: readonly Place[]): readonly [string, string, string] => {
  const planned = places.flatMap((place) => {
    const ratio = ratioToBest(place);
    return ratio === undefined ? [] : [{ name: `${place.group}, ${place.title}`, ratio }];
  });
  const missed = planned.filter(({ ratio }) => ratio > wanted);
  const list = (some: typeof planned): string => some.map(({ name, ratio }) => `${name} ${times(ratio)}`).join("; ");
  return [
    `What a job plans for itself takes at most ${times(wanted)} as long as the best that one could have named in ${planned.length - missed.length} of ${planned.length} places${missed.length === 0 ? "" : `; missed: ${list(missed)}`}.`,
    `The fastest way for tokens to travel, beside ${bases.ways}: ${fastest(places, "ways")}.`,
    `Where ${tensorRanks} ranks of a host share each expert out, the fastest schedule beside the ${bases.shards}: ${fastest(places, "shards")}.`,
  ];
};

/** Returns a page with a plot, three sentences, and a table per network and number of ranks. */
export const stepPage = (runs: readonly StepRun[], resultOf: ResultOf, draw: Draw): string => {
  const places = placesOf(runs, resultOf);
  const plot = plotOf(places);
  const sections = (group: StepGroup): string[] =>
    places
      .filter((place) => place.group === group)
      .map((place) => `### ${place.title[0]!.toUpperCase()}${place.title.slice(1)}\n\n${tableOf(place)}`);
  return [
    ...(plot.rows.length > 0 ? [draw(plot)] : []),
    stepSentences(places).join("\n"),
    `A GPT of ${gpt.layers} blocks, Moby-Dick by bytes, both of which have experts; a sigmoid gate that begins to learn. ${sizes.tokens} tokens of each rank, or of
each ${tensorRanks} that have the same. Gradients of what all ranks have are averaged meanwhile; a plain update. Two hosts as in
moe-layer: messages and computing are real, the time that a cable would take is added, and all ranks share the cores of
one machine.`,
    "## Ways to travel",
    `No token is dropped. \`${automatic}\` measures before its first step, way and chunks together; the others have one chunk.`,
    ...sections("ways"),
    "## Experts shared out by ranks of a host",
    "Slots of one size, 1.25 times the even share, which all schedules allow. With `none` each rank has whole experts, twice the parameters; `auto` chooses among the others.",
    ...sections("shards"),
    "",
  ].join("\n\n");
};
