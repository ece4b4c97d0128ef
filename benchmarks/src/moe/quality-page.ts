import { type Quality, qualityOf } from "../convergence/verdict.ts";
import { alignColumns } from "../report/align-columns.ts";
import { type ExpertFigures, meanFigures } from "../studies/expert-figures.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { type Contestant, dense } from "./contestants.ts";
import type { QualityRun } from "./quality-plan.ts";

/** Minimum number of seeds to claim that a variant is better. */
export const minSeeds = 3;

/** Quality of a variant, compared with the dense model. */
export interface Standing {
  readonly contestant: Contestant;
  readonly peak: number;
  /** Quality on test samples; undefined while a seed is missing. */
  readonly quality: Quality | undefined;
  /** Quality gain over the dense model, in bits per byte. Negative if the variant is worse. */
  readonly gain: number | undefined;
  /** Whether each seed of the variant is better than each seed of the dense model. */
  readonly isBetter: boolean;
  /** Token statistics of the expert layers, averaged over the seeds. */
  readonly experts: ExpertFigures | undefined;
}

export const standingsOf = (runs: readonly QualityRun[], resultOf: ResultOf): Standing[] => {
  const all = [...Map.groupBy(runs, ({ contestant }) => contestant)].map(([contestant, own]) => {
    const outcomes = own.map((run) => resultOf(run)?.outcome);
    const experts = outcomes.flatMap((outcome) => (outcome?.kind === "done" ? (outcome.experts ?? []) : []));
    return { contestant, peak: own[0]!.peak, quality: qualityOf(outcomes), experts: meanFigures(experts) };
  });
  const base = all.find(({ contestant }) => contestant.name === dense)?.quality;
  return all.map((one) => ({
    ...one,
    gain: one.quality === undefined || base === undefined ? undefined : base.mean - one.quality.mean,
    isBetter:
      one.quality !== undefined &&
      base !== undefined &&
      Math.min(one.quality.seeds, base.seeds) >= minSeeds &&
      one.quality.greatest < base.least,
  }));
};

const bits = (value: number): string => value.toFixed(3);
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** Returns three sentences that summarize the page. */
export const sentencesOf = (standings: readonly Standing[]): readonly [string, string, string] => {
  const base = standings.find(({ contestant }) => contestant.name === dense);
  const judged = standings.filter(
    ({ contestant, quality }) => contestant.name !== dense && contestant.isCausal && quality !== undefined,
  );
  const better = judged.filter(({ isBetter }) => isBetter);
  const others = judged.filter(({ isBetter }) => !isBetter);
  const named = ({ contestant, quality }: Standing): string => `${contestant.name} ${bits(quality!.mean)}`;
  const list = (some: readonly Standing[]): string =>
    some.length === 0
      ? "none"
      : some
          .toSorted((a, b) => a.quality!.mean - b.quality!.mean)
          .map(named)
          .join(", ");
  const withFigures = judged.filter(({ experts }) => experts !== undefined);
  const most = withFigures.toSorted((a, b) => b.experts!.droppedShare - a.experts!.droppedShare)[0];
  const open = standings.filter(({ quality }) => quality === undefined).map(({ contestant }) => contestant.name);
  return [
    `The dense GPT comes to ${base?.quality === undefined ? "an unknown number of" : bits(base.quality.mean)} bits per byte; with equal flops per token, better in every seed: ${list(better)}.`,
    `Not better in every seed: ${list(others)}${open.length === 0 ? "" : `; not finished: ${open.join(", ")}`}.`,
    most === undefined
      ? "What share of the choices is dropped is not known yet."
      : `Most choices are dropped by ${most.contestant.name}, ${percent(most.experts!.droppedShare)}; the losses of gates that see later bytes are no losses of a language model, and stand apart.`,
  ];
};

const header = ["model", "bits per byte", "less than dense", "dropped", "busiest expert", "entropy", "rate", "note"];

const cellsOf = ({ contestant, quality, gain, experts, peak }: Standing): string[] => [
  contestant.name,
  quality === undefined
    ? "not finished"
    : `${bits(quality.mean)} (${bits(quality.least)} to ${bits(quality.greatest)})`,
  gain === undefined || contestant.name === dense ? "" : bits(gain),
  experts === undefined ? "" : percent(experts.droppedShare),
  experts === undefined ? "" : `${experts.imbalance.toFixed(2)}×`,
  experts === undefined ? "" : experts.entropy.toFixed(2),
  Number.isNaN(peak) ? "–" : `${peak}`,
  contestant.note,
];

const section = (title: string, some: readonly Standing[]): string =>
  `## ${title}\n\n${alignColumns([header, ...some.map(cellsOf)])}`;

/**
 * Returns a page with a plot, three sentences, a table of causal variants, and a table of variants whose predictions
 * depend on later bytes.
 */
export const qualityPage = (runs: readonly QualityRun[], resultOf: ResultOf, draw: Draw): string => {
  const standings = standingsOf(runs, resultOf);
  const base = standings.find(({ contestant }) => contestant.name === dense)?.quality;
  const causal = standings.filter(({ contestant }) => contestant.isCausal);
  const rows = causal.flatMap(({ contestant, quality, isBetter, experts }) =>
    quality === undefined || base === undefined
      ? []
      : [
          {
            label: contestant.name,
            value: quality.mean,
            low: quality.least,
            high: quality.greatest,
            solid: isBetter || contestant.name === dense,
            note: experts === undefined ? "" : `${percent(experts.droppedShare)} dropped`,
          },
        ],
  );
  const plot =
    base === undefined || rows.length < 2
      ? []
      : [
          draw({
            name: "gates",
            title: "Bits per byte of Moby-Dick after 800 steps, with equal flops per token",
            axis: "bits per byte on test samples; less is better",
            scale: "linear",
            reference: base.mean,
            legend: "marks: means of the seeds, lines: least to greatest; filled: better than dense in every seed",
            rows,
          }),
        ];
  return [
    ...plot,
    sentencesOf(standings).join("\n"),
    section("Predicting a byte from those before it", causal),
    section(
      "Gates that see later bytes",
      standings.filter(({ contestant }) => !contestant.isCausal),
    ),
    `A GPT of 2 layers and 64 features on windows of 64 bytes, batches of 16, 800 steps of AdamW; eight experts in both blocks, as many flops per token
as the dense feed-forward part (the gate comes on top). Learning rates were sought on samples held back from training, with the same budget for each
(\`pnpm bench moe-search\`). *Dropped* is the share of choices without room while training, *busiest expert* its load over the mean one, *entropy* that of
the gate's weights over experts in nats (ln 8 is 2.08): means over layers and steps. Capacity is 1.25 times an even load unless a name says another.
`,
  ].join("\n\n");
};
