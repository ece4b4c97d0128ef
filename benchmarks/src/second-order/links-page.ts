import { alignColumns } from "../report/align-columns.ts";
import { milliseconds } from "../report/milliseconds.ts";
import type { RangePlot, RangeRow } from "../report/range-plot.ts";
import { orderingRule, orderingsSection } from "../studies/orderings-section.ts";
import type { Figures, Outcome } from "../studies/outcome.ts";
import { shortfallsSection, unsuccessfulRuns } from "../studies/shortfalls-section.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { linksOrderings } from "./links-orderings.ts";
import { linksBaseline, linksModels, type LinksRun } from "./links-plan.ts";
import { secondsOfStages } from "./shares.ts";
import type { Stage } from "./stages.ts";

type OutcomeOf = (run: LinksRun) => Outcome | undefined;

/** Columns of the stage table, in the papers' order. */
const stageColumns: readonly (readonly [title: string, ...stages: readonly Stage[]])[] = [
  ["factors", "factors"],
  ["they travel", "factorCommunication"],
  ["inverses", "inverses"],
  ["they travel", "inverseCommunication"],
  ["precondition", "precondition"],
  ["that travels", "preconditionedCommunication"],
  ["gradients travel", "gradientCommunication"],
  ["rest", "passes", "update", "rest"],
];

const header = [
  "form",
  "ms per step",
  `beside ${linksBaseline}`,
  ...stageColumns.map(([title]) => title),
  "KiB per step",
  "chosen",
  "note",
];

/**
 * Timed run of a K-FAC variant on one network, number of ranks and model, and the traced run if the variant has one.
 */
interface FormRuns {
  readonly timed: LinksRun;
  readonly traced: LinksRun | undefined;
}

/** Runs of all K-FAC variants on one network, number of ranks and model. */
interface Place {
  readonly title: string;
  readonly forms: readonly FormRuns[];
}

const placesOf = (runs: readonly LinksRun[], outcomeOf: OutcomeOf): Place[] =>
  [...Map.groupBy(runs, ({ network, ranks, model }) => `${network.title}, ${ranks} ranks: ${model.title}`)]
    .filter(([, own]) => own.some((run) => outcomeOf(run) !== undefined)) // omit tables without values
    .map(([title, own]) => ({
      title,
      forms: own
        .filter(({ kind }) => kind === "timed")
        .map((timed) => ({
          timed,
          traced: own.find(({ kind, method }) => kind === "traced" && method === timed.method),
        })),
    }));

const doneOf = (outcome: Outcome | undefined): Figures | undefined => (outcome?.kind === "done" ? outcome : undefined);

const baseOf = ({ forms }: Place, outcomeOf: OutcomeOf): Figures | undefined => {
  const base = forms.find(({ timed }) => timed.method.name === linksBaseline);
  return base && doneOf(outcomeOf(base.timed));
};

const stageCells = (traced: Figures | undefined): string[] => {
  const seconds = traced?.stageSeconds;
  return stageColumns.map(([, ...stages]) => {
    if (seconds === undefined) return "";
    const own = secondsOfStages(seconds, stages);
    return own === 0 ? "–" : milliseconds(own);
  });
};

/** Whether the run chooses its K-FAC variant from measurements. */
const isChosen = ({ method }: LinksRun): boolean => method.optimizer["form"] === "auto";

const cellsOf = ({ timed, traced }: FormRuns, base: Figures | undefined, outcomeOf: OutcomeOf): string[] => {
  const outcome = outcomeOf(timed);
  const { name, note = "" } = timed.method;
  const stages = stageCells(traced && doneOf(outcomeOf(traced)));
  if (outcome?.kind !== "done")
    return [
      name,
      "–",
      "–",
      ...stages,
      "–",
      "",
      outcome === undefined ? "not run" : `${outcome.kind}: ${outcome.reason}`,
    ];
  const { stepSeconds, bytesSentPerStep, form } = outcome;
  return [
    name,
    `${milliseconds(stepSeconds.median)} ± ${milliseconds(stepSeconds.mad)} (${stepSeconds.n})`,
    base === undefined ? "–" : (stepSeconds.median / base.stepSeconds.median).toFixed(2),
    ...stages,
    (bytesSentPerStep / 1024).toFixed(1),
    isChosen(timed) ? (form ?? "") : "",
    note,
  ];
};

const plotOf = ({ title, forms }: Place, base: Figures, outcomeOf: OutcomeOf): RangePlot => {
  const { network, ranks, model } = forms[0]!.timed;
  return {
    name: `${network.name}-${ranks}-${model.name}`,
    title,
    axis: `step time beside ${linksBaseline}`,
    scale: "log",
    reference: 1,
    legend: "marks: medians, lines: what they waver by; filled: who does what is fixed; hollow: chosen by measurements",
    rows: forms.flatMap(({ timed }): RangeRow[] => {
      const figures = doneOf(outcomeOf(timed));
      if (figures === undefined || timed.method.name === linksBaseline) return [];
      const { stepSeconds, form, bytesSentPerStep } = figures;
      const relative = (seconds: number): number => seconds / base.stepSeconds.median;
      return [
        {
          label: timed.method.name,
          value: relative(stepSeconds.median),
          // A spread as large as the median would extend to a time of zero, so the range ends at a tenth of the median.
          low: relative(Math.max(stepSeconds.median - stepSeconds.mad, stepSeconds.median / 10)),
          high: relative(stepSeconds.median + stepSeconds.mad),
          solid: !isChosen(timed),
          note: `${milliseconds(stepSeconds.median)} ms, ${(bytesSentPerStep / 1024).toFixed(0)} KiB${isChosen(timed) ? `, ${form}` : ""}`,
        },
      ];
    }),
  };
};

/** Returns a sentence that summarizes a table. */
const linksSentence = ({ forms }: Place, outcomeOf: OutcomeOf): string => {
  const done = forms.flatMap(({ timed }) => {
    const figures = doneOf(outcomeOf(timed));
    return figures === undefined || timed.method.name === linksBaseline ? [] : [{ name: timed.method.name, figures }];
  });
  if (done.length === 0) return "No form was run yet.";
  const medianOf = ({ figures }: (typeof done)[number]): number => figures.stepSeconds.median;
  const [best, worst] = [
    done.reduce((so, next) => (medianOf(next) < medianOf(so) ? next : so)),
    done.reduce((so, next) => (medianOf(next) > medianOf(so) ? next : so)),
  ];
  const auto = done.find(({ name }) => name === "auto");
  const chose =
    auto?.figures.form === undefined
      ? ""
      : `; auto chose ${auto.figures.form}, and takes ${(medianOf(auto) / medianOf(best)).toFixed(2)} times as long as the fastest`;
  return `Fastest is ${best.name} with ${milliseconds(medianOf(best))} ms per step, slowest ${worst.name} with ${milliseconds(medianOf(worst))} ms${chose}.`;
};

/** Returns a page with the paper's claims, then a table per network, number of ranks and model. */
export const linksPage = (runs: readonly LinksRun[], resultOf: ResultOf, draw: Draw): string => {
  const outcomes = new Map(runs.map((run) => [run, resultOf(run)?.outcome]));
  const outcomeOf: OutcomeOf = (run) => outcomes.get(run);
  const places = placesOf(runs, outcomeOf);
  const timed = runs.filter(({ kind }) => kind === "timed");
  const section = (place: Place): string => {
    const base = baseOf(place, outcomeOf);
    const plot = base && plotOf(place, base, outcomeOf);
    return [
      `## ${place.title}`,
      ...(plot === undefined || plot.rows.length === 0 ? [] : [draw(plot)]),
      linksSentence(place, outcomeOf),
      alignColumns([header, ...place.forms.map((form) => cellsOf(form, base, outcomeOf))]),
    ].join("\n\n");
  };
  return `${orderingsSection({ runs: timed, outcomeOf, orderings: linksOrderings }, draw)}

In the table above stands how many times as fast the first form is as the second, for ${linksModels.map(({ name }) => name).join(" and ")} in this order. ${orderingRule}

Ranks are processes that reach each other by TCP through emulated links; messages and sums are real, the time that a cable would take is added. All ranks
share the cores of one machine: where there is less than one for each, times of computing are those of a slower machine, and what is hidden behind computing
is little. Factors are gathered and inverses made anew in each step, so that all stages are seen, as in the papers' tables; a run that does so every tenth
step has a tenth of them. Factors are in blocks of at most 512 rows, else that of 3137 rows of the CNN were most of all work, and could not be shared. Ms per step
are medians ± median absolute deviations after a warm-up (n counts the steps of all takes). Stages are ms of a traced step, mean of the ranks: as they are recorded,
that step is longer than the one beside it. What travels is all that a rank's own thread spends on messages: to pack, start, await and unpack them, slower
ranks included; what the network does meanwhile is hidden, and is not seen. Chosen is the form that auto took by its measurements, with the share of the ranks that
precondition a layer; spd measures, too, but only who inverts what follows from that.

${places.length === 0 ? "Nothing was run yet." : places.map(section).join("\n\n")}

${shortfallsSection(unsuccessfulRuns(runs, outcomeOf), runs, outcomeOf)}`;
};
