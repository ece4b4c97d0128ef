import { median } from "@skein/measuring";
import { formatError, formatMilliseconds, formatShare } from "../predictions/format.ts";
import { alignColumns } from "../report/align-columns.ts";
import type { RangePlot } from "../report/range-plot.ts";
import type { JobFile } from "../studies/job-file.ts";
import type { Draw } from "../studies/study.ts";
import { calibrationNetwork } from "./calibration.ts";
import { fastestMeasured, cellNameOf, cellsOf, choiceOf, errorOf, type OwnStep, type PlannedStep } from "./own-step.ts";

/**
 * Required maxima: median and worst relative error of the predicted step times, and `regret`, the relative extra time
 * of the chosen method compared with the best method.
 */
const asked = { median: 0.1, worst: 0.25, regret: 0.1 } as const;

const sizeOf = (steps: readonly OwnStep[]): number[] =>
  steps.map((step) => Math.abs(errorOf(step))).toSorted((a, b) => a - b);

const worstOf = (steps: readonly OwnStep[]): OwnStep =>
  steps.reduce((a, b) => (Math.abs(errorOf(b)) > Math.abs(errorOf(a)) ? b : a));

const titleOf = ({ run }: OwnStep): string => cellNameOf(run);

/** Returns three sentences that summarize the page. */
export const ownStepsSentences = (steps: readonly OwnStep[]): readonly [string, string, string] => {
  const errors = sizeOf(steps);
  const within = errors.filter((error) => error <= asked.median).length;
  const worst = worstOf(steps);
  const choices = cellsOf(steps).map(choiceOf);
  const good = choices.filter(({ regret }) => regret <= asked.regret).length;
  return [
    `Calibrated over another network, with other buckets and without overlap, skein-profile predicts the steps of ${steps.length} configurations to ${formatShare(median(errors))} in the middle (${formatShare(asked.median)} asked); ${within} of them to ${formatShare(asked.median)}.`,
    `The worst is off by ${formatError(errorOf(worst))} (${formatShare(asked.worst)} asked): ${worst.run.method.name}, ${titleOf(worst)}.`,
    `The method that is predicted to be the fastest is, as measured, within ${formatShare(asked.regret)} of the fastest in ${good} of ${choices.length} cells.`,
  ];
};

const plotOf = (steps: readonly OwnStep[]): RangePlot => ({
  name: "methods",
  title: "Predicted over measured time of a step, by method",
  axis: "predicted over measured",
  scale: "log",
  reference: 1,
  legend: "marks: medians over networks, ranks and models, lines: least to greatest; filled: all within 25 %",
  rows: [...Map.groupBy(steps, ({ run }) => run.method.name)].map(([method, own]) => {
    const ratios = own.map((step) => 1 + errorOf(step));
    return {
      label: method,
      value: median(ratios),
      low: Math.min(...ratios),
      high: Math.max(...ratios),
      solid: sizeOf(own).at(-1)! <= asked.worst,
      note: `${own.length} configurations`,
    };
  }),
});

const choiceTable = (steps: readonly OwnStep[]): string =>
  alignColumns([
    [
      "network, ranks, model",
      "predicted to be fastest",
      "measured ms",
      "fastest",
      "measured ms",
      "longer by",
      "asked ≤ 10 %",
    ],
    ...cellsOf(steps).map((cell) => {
      const { chosen, best, regret } = choiceOf(cell);
      return [
        titleOf(cell[0]!),
        chosen.run.method.name,
        formatMilliseconds(chosen.measured.median),
        best.run.method.name,
        formatMilliseconds(best.measured.median),
        formatShare(regret),
        regret <= asked.regret ? "met" : "missed",
      ];
    }),
  ]);

const wordsOf = (settings: JobFile): string =>
  Object.entries(settings)
    .filter(([key, value]) => !(key === "priorities" && value === "none"))
    .map(([key, value]) => `${key}: ${JSON.stringify(value).replaceAll(/["{}]/g, "").replaceAll(",", ", ")}`)
    .join("; ");

const planTable = (plans: readonly PlannedStep[], steps: readonly OwnStep[]): string =>
  alignColumns([
    [
      "network, ranks, model",
      "take",
      "named",
      "predicted ms",
      "measured ms",
      "fastest method",
      "its ms",
      "longer by",
      "asked ≤ 10 %",
    ],
    ...plans.map((plan) => {
      const best = fastestMeasured(plan, steps);
      const longer = plan.measured.median / best.measured.median - 1;
      return [
        cellNameOf(plan.run),
        `${plan.take + 1}${plan.lossless ? ", without loss" : ""}`,
        wordsOf(plan.settings),
        formatMilliseconds(plan.predictedSeconds),
        `${formatMilliseconds(plan.measured.median)} ± ${formatMilliseconds(plan.measured.mad)}`,
        best.run.method.name,
        formatMilliseconds(best.measured.median),
        formatError(longer),
        longer <= asked.regret ? "met" : "missed",
      ];
    }),
  ]);

const cellSection = (cell: readonly OwnStep[]): string => `### ${titleOf(cell[0]!)}

${alignColumns([
  ["method", "measured ms", "predicted ms", "error"],
  ...cell.map((step) => [
    step.run.method.name,
    `${formatMilliseconds(step.measured.median)} ± ${formatMilliseconds(step.measured.mad)}`,
    formatMilliseconds(step.predictedSeconds),
    formatError(errorOf(step)),
  ]),
])}`;

const maxTakes = (steps: readonly OwnStep[]): number => Math.max(...steps.map(({ takes }) => takes));

const apartSentence = (steps: readonly OwnStep[]): string =>
  maxTakes(steps) === 1
    ? "Each run was made once: how far takes of one lie apart is not known."
    : `Takes of one run lie ±${formatShare(median(steps.map(({ relativeHalfRange }) => relativeHalfRange)))} around their middle, half of them more: no prediction can be nearer than that for sure.`;

const takesSentence = (steps: readonly OwnStep[]): string =>
  maxTakes(steps) === 1
    ? "All of that was done once."
    : `All of that is done in turns, ${maxTakes(steps)} times, and figures are medians.`;

export interface OwnStepsPageOptions {
  readonly date: string;
  readonly command: string;
  readonly machine: string;
  readonly draw: Draw;
}

/** Returns a dated page that compares predicted with measured steps of this system. */
export const ownStepsPage = (
  steps: readonly OwnStep[],
  plans: readonly PlannedStep[],
  { date, command, machine, draw }: OwnStepsPageOptions,
): string => `# Our own steps beside their predictions, ${date}

${draw(plotOf(steps))}

${ownStepsSentences(steps)
  .map((sentence) => `- ${sentence}`)
  .join("\n")}

Command: \`${command}\`.
Machine: ${machine}. ${apartSentence(steps)}

Each model and number of ranks is calibrated by \`skein-profile calibrate\` over emulated links of ${calibrationNetwork.title}: dense with each tensor by itself after the backward pass, beside it and in halves, and
each compression with all gradients in one message after it. The links of the other network are measured by \`skein-profile links\`; \`skein-profile predict\` then says what each method takes there, and each is run.
${takesSentence(steps)} Nothing of what is predicted was measured for the calibration. Left out is \`dear-tuned\`, which tries sizes out
while it runs.

## Which method to choose

Among those that train as well as dense training does.

${choiceTable(steps)}

## What \`skein-profile plan\` names

It searches ways to exchange gradients of its own, by the same hardware file, and what it names is run. Beside it stands the fastest method of the tables below, as measured over all takes.

${planTable(plans, steps)}

## All configurations

${cellsOf(steps).map(cellSection).join("\n\n")}
`;
