import type { Summary } from "@skein/measuring";
import type { JobFile } from "../studies/job-file.ts";
import { isClaimed, type SlowLinksRun } from "../slow-links/plan.ts";

/** A run of the study of slow links beside what was predicted of it. */
export interface OwnStep {
  readonly run: SlowLinksRun;
  readonly measured: Summary;
  readonly predictedSeconds: number;
  /** How often it was calibrated for and measured; both figures are medians. */
  readonly takes: number;
  /** Half of what lies between the least and the greatest of its takes as measured, over their middle. */
  readonly apart: number;
}

/** Predicted over measured − 1. */
export const errorOf = ({ measured, predictedSeconds }: OwnStep): number => predictedSeconds / measured.median - 1;

/** What `skein-profile plan` named in one take, and how long its step took. */
export interface PlannedStep {
  /** Of the cell: its baseline. */
  readonly run: SlowLinksRun;
  readonly take: number;
  /** Only ways to exchange the same gradients were looked at. */
  readonly lossless: boolean;
  /** What it changes of the job. */
  readonly settings: JobFile;
  readonly predictedSeconds: number;
  readonly measured: Summary;
}

/** Whether a method exchanges the same gradients as the baseline does. */
export const isLossless = ({ method: { setting } }: SlowLinksRun): boolean => setting === undefined;

/** The fastest method of a cell as measured, beside which a plan is judged. */
export const bestBeside = ({ run, lossless }: PlannedStep, steps: readonly OwnStep[]): OwnStep =>
  fastest(
    steps.filter((step) => cellNameOf(step.run) === cellNameOf(run) && (!lossless || isLossless(step.run))),
    ({ measured }) => measured.median,
  );

/** One network, number of ranks and model: what is calibrated together. */
export const cellNameOf = ({ network, ranks, model }: SlowLinksRun): string =>
  `${network.title}, ${ranks} ranks: ${model.title}`;

/** The steps of each cell: among these a method is chosen. */
export const cellsOf = (steps: readonly OwnStep[]): readonly (readonly OwnStep[])[] => [
  ...Map.groupBy(steps, ({ run }) => cellNameOf(run)).values(),
];

const fastest = (steps: readonly OwnStep[], by: (step: OwnStep) => number): OwnStep =>
  steps.reduce((a, b) => (by(b) < by(a) ? b : a));

/** What choosing by prediction costs beside choosing by measurement. */
export interface Choice {
  /** Predicted to be the fastest. */
  readonly chosen: OwnStep;
  /** Measured as the fastest. */
  readonly best: OwnStep;
  /** How much longer the chosen one takes than the best, both as measured. */
  readonly regret: number;
}

/** Choose a method of a cell by what was predicted, among those that train as well as dense training does. */
export const choiceOf = (cell: readonly OwnStep[]): Choice => {
  const claimed = cell.filter(({ run }) => isClaimed(run));
  const chosen = fastest(claimed, ({ predictedSeconds }) => predictedSeconds);
  const best = fastest(claimed, ({ measured }) => measured.median);
  return { chosen, best, regret: chosen.measured.median / best.measured.median - 1 };
};
