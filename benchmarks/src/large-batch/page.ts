import { type Quality, qualityOf } from "../convergence/verdict.ts";
import { alignColumns } from "../report/align-columns.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { type Contestant, large, small, trainSamples } from "./contestants.ts";
import type { LargeBatchRun } from "./plan.ts";

/** Minimum number of seeds to claim that a method is better. */
export const minSeeds = 3;

/** A method and its results. */
export interface Standing {
  readonly contestant: Contestant;
  readonly run: LargeBatchRun;
  /** Quality on test samples; undefined while a seed is missing. */
  readonly quality: Quality | undefined;
  /** Median step time in seconds; undefined while no seed is done. */
  readonly steps: number | undefined;
}

export const standingsOf = (runs: readonly LargeBatchRun[], resultOf: ResultOf): Standing[] =>
  [...Map.groupBy(runs, ({ contestant }) => contestant)].map(([contestant, own]) => {
    const outcomes = own.map((run) => resultOf(run)?.outcome);
    const done = outcomes.find((outcome) => outcome?.kind === "done");
    return {
      contestant,
      run: own[0]!,
      quality: qualityOf(outcomes),
      steps: done?.kind === "done" ? done.steps : undefined,
    };
  });

const percent = (value: number): string => `${value.toFixed(2)} %`;
const span = ({ mean, least, greatest }: Quality): string =>
  `${percent(mean)} (${percent(least)} to ${percent(greatest)})`;

/** Returns three sentences that summarize the page. */
export const sentencesOf = (standings: readonly Standing[]): readonly [string, string, string] => {
  const of = (name: string): Standing | undefined => standings.find(({ contestant }) => contestant.name === name);
  const [few, many] = [of(large), of(small)];
  const other = standings.find(({ contestant }) => contestant.name !== large && contestant.name !== small);
  const unknown = "is not known yet";
  if (few?.quality === undefined || many?.quality === undefined)
    return [
      `What small batches come to ${many?.quality === undefined ? unknown : `is ${span(many.quality)}`}.`,
      `What large batches by LARS come to ${few?.quality === undefined ? unknown : `is ${span(few.quality)}`}.`,
      "Which of the two does better cannot be said yet.",
    ];
  const behind = many.quality.mean - few.quality.mean;
  const areSeparate = few.quality.greatest < many.quality.least || many.quality.greatest < few.quality.least;
  const enough = Math.min(few.quality.seeds, many.quality.seeds) >= minSeeds;
  return [
    `With as many epochs, ${few.steps} steps of LARS on large batches get ${span(few.quality)} right of the test pictures, ${many.steps} steps of momentum on small ones ${span(many.quality)}.`,
    `The large batches are ${Math.abs(behind).toFixed(2)} points ${behind > 0 ? "behind" : "ahead"}${areSeparate && enough ? ", in every seed" : ", which seeds do not tell apart"}, with a fifth of the messages.`,
    other?.quality === undefined
      ? "How plain momentum does on the large batches is not known yet."
      : `Plain momentum on the same large batches comes to ${span(other.quality)}, ${comparedTo(few.quality, other.quality)}.`,
  ];
};

/** Describes the gain of LARS over momentum: the difference of means, and whether the ranges over seeds overlap. */
const comparedTo = (lars: Quality, plain: Quality): string => {
  const gain = lars.mean - plain.mean;
  const isApart = lars.least > plain.greatest || plain.least > lars.greatest;
  const points = `${gain.toFixed(2)} points${isApart ? "" : ", which seeds do not tell apart"}`;
  return gain > 0 ? `so LARS gains ${points}` : `so LARS gains nothing at this size (${points})`;
};

const cellsOf = ({ contestant, run: { setting }, quality, steps }: Standing): string[] => [
  contestant.name,
  quality === undefined ? "not finished" : span(quality),
  steps === undefined ? "" : `${steps}`,
  `${setting.peak}`,
  setting.coefficient === undefined ? "" : `${setting.coefficient}`,
  `${setting.warmupShare}`,
  `${setting.weightDecay}`,
  `${setting.labelSmoothing}`,
  `${setting.decay}`,
  contestant.note,
];

const header = [
  "training",
  "right",
  "steps",
  "rate",
  "coefficient",
  "warm-up",
  "weight decay",
  "label smoothing",
  "momentum",
  "note",
];

/** Returns a page with a plot, three sentences, and a table. */
export const largeBatchPage = (runs: readonly LargeBatchRun[], resultOf: ResultOf, draw: Draw): string => {
  const standings = standingsOf(runs, resultOf);
  const base = standings.find(({ contestant }) => contestant.name === small)?.quality;
  const rows = standings.flatMap(({ contestant, quality, steps }) =>
    quality === undefined
      ? []
      : [
          {
            label: contestant.name,
            value: quality.mean,
            low: quality.least,
            high: quality.greatest,
            solid: contestant.name === large,
            note: `${steps} steps`,
          },
        ],
  );
  const plot =
    base === undefined || rows.length < 2
      ? []
      : [
          draw({
            name: "accuracy",
            title: "Fashion-MNIST, ResNet-18, 10 epochs of small and of large batches",
            axis: "percent right of the test pictures; more is better",
            scale: "linear",
            reference: base.mean,
            legend: "marks: means of the seeds, lines: least to greatest; filled: LARS",
            rows,
          }),
        ];
  return [
    ...plot,
    sentencesOf(standings).join("\n"),
    alignColumns([header, ...standings.map(cellsOf)]),
    `A ResNet-18 of 8 to 64 channels on the first ${trainSamples.toLocaleString("en")} pictures of Fashion-MNIST, 10 epochs, one rank, a rate that comes up in a share of the steps and
falls as (1 − t)². Large batches are a twentieth of the samples, as those of "ImageNet in four minutes" (Jia et al. 2018, arXiv 1807.11205).
Biases and gains of norms have no decay and no trust ratio in any LARS run. Settings were sought on samples held back from training
(\`pnpm bench large-batch-search\`).
`,
  ].join("\n\n");
};
