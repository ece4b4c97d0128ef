import type { Summary } from "@skein/measuring";
import type { JobFile } from "../studies/job-file.ts";
import { isClaimed, type SlowLinksRun } from "../slow-links/plan.ts";

/** A run of the study of slow links, predicted and measured. */
export interface OwnStep {
  readonly run: SlowLinksRun;
  readonly measured: Summary;
  readonly predictedSeconds: number;
  /** Number of calibrations and measurements; both figures are medians over them. */
  readonly takes: number;
  /** Half the range of the measured takes, relative to the middle of the range. */
  readonly relativeHalfRange: number;
}

/** Predicted over measured − 1. */
export const errorOf = ({ measured, predictedSeconds }: OwnStep): number => predictedSeconds / measured.median - 1;

/** Method that `skein-profile plan` chose in one take, with its predicted and measured step time. */
export interface PlannedStep {
  /** Baseline run of the cell. */
  readonly run: SlowLinksRun;
  readonly take: number;
  /** Whether only ways to exchange the same gradients were considered. */
  readonly lossless: boolean;
  /** Changes to the job. */
  readonly settings: JobFile;
  readonly predictedSeconds: number;
  readonly measured: Summary;
}

/** Whether a method exchanges the same gradients as the baseline does. */
const isLossless = ({ method: { setting } }: SlowLinksRun): boolean => setting === undefined;

/** Fastest method of a cell as measured, which a plan is compared with. */
export const fastestMeasured = ({ run, lossless }: PlannedStep, steps: readonly OwnStep[]): OwnStep =>
  fastest(
    steps.filter((step) => cellNameOf(step.run) === cellNameOf(run) && (!lossless || isLossless(step.run))),
    ({ measured }) => measured.median,
  );

/** Name of a cell: one network, number of ranks and model, which are calibrated together. */
export const cellNameOf = ({ network, ranks, model }: SlowLinksRun): string =>
  `${network.title}, ${ranks} ranks: ${model.title}`;

/** The steps of each cell. A method is chosen among the steps of one cell. */
export const cellsOf = (steps: readonly OwnStep[]): readonly (readonly OwnStep[])[] => [
  ...Map.groupBy(steps, ({ run }) => cellNameOf(run)).values(),
];

const fastest = (steps: readonly OwnStep[], by: (step: OwnStep) => number): OwnStep =>
  steps.reduce((a, b) => (by(b) < by(a) ? b : a));

/** Cost of choosing a method by prediction instead of by measurement. */
export interface Choice {
  /** Method predicted to be the fastest. */
  readonly chosen: OwnStep;
  /** Method measured as the fastest. */
  readonly best: OwnStep;
  /** Extra time of the chosen method relative to the best, both as measured. */
  readonly regret: number;
}

/** Chooses a method of a cell by predicted time, among the methods that reach the quality of dense training. */
export const choiceOf = (cell: readonly OwnStep[]): Choice => {
  const claimed = cell.filter(({ run }) => isClaimed(run));
  const chosen = fastest(claimed, ({ predictedSeconds }) => predictedSeconds);
  const best = fastest(claimed, ({ measured }) => measured.median);
  return { chosen, best, regret: chosen.measured.median / best.measured.median - 1 };
};
