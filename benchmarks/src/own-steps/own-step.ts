import type { Summary } from "@skein/measuring";
import type { JobFile } from "../studies/job-file.ts";
import { isClaimed, type SlowLinksRun } from "../slow-links/plan.ts";

/** Predicted and measured step time of a run from the study of slow links. */
export interface OwnStep {
  readonly run: SlowLinksRun;
  readonly measured: Summary;
  readonly predictedSeconds: number;
  /**
   * Number of repetitions, each with a calibration and a measurement. Predicted and measured times are medians over the
   * repetitions.
   */
  readonly takes: number;
  /** Half the range of the times measured in the repetitions, relative to the middle of the range. */
  readonly relativeHalfRange: number;
}

/** Returns the relative error of the prediction: predicted / measured − 1. */
export const errorOf = ({ measured, predictedSeconds }: OwnStep): number => predictedSeconds / measured.median - 1;

/** Method that `skein-profile plan` chose in one repetition, with its predicted and measured step time. */
export interface PlannedStep {
  /** Run with the baseline method, for the same network, number of ranks and model. */
  readonly run: SlowLinksRun;
  readonly take: number;
  /** Whether the plan considered only methods that exchange the same gradients as the baseline. */
  readonly lossless: boolean;
  /** Job options that the plan changed. */
  readonly settings: JobFile;
  readonly predictedSeconds: number;
  readonly measured: Summary;
}

/** Whether a method exchanges the same gradients as the baseline. */
const isLossless = ({ method: { setting } }: SlowLinksRun): boolean => setting === undefined;

/**
 * Returns the fastest measured method for the network, number of ranks and model of a plan. Only lossless methods are
 * compared if the plan must be lossless.
 */
export const fastestMeasured = ({ run, lossless }: PlannedStep, steps: readonly OwnStep[]): OwnStep =>
  fastest(
    steps.filter((step) => cellNameOf(step.run) === cellNameOf(run) && (!lossless || isLossless(step.run))),
    ({ measured }) => measured.median,
  );

/** Returns the name of a cell: a network, number of ranks and model, which are calibrated together. */
export const cellNameOf = ({ network, ranks, model }: SlowLinksRun): string =>
  `${network.title}, ${ranks} ranks: ${model.title}`;

/** Groups steps by cell. A method is chosen among the steps of one cell. */
export const cellsOf = (steps: readonly OwnStep[]): readonly (readonly OwnStep[])[] => [
  ...Map.groupBy(steps, ({ run }) => cellNameOf(run)).values(),
];

const fastest = (steps: readonly OwnStep[], by: (step: OwnStep) => number): OwnStep =>
  steps.reduce((a, b) => (by(b) < by(a) ? b : a));

/** Cost of choosing a method by prediction instead of by measurement. */
export interface Choice {
  /** Method with the shortest predicted time. */
  readonly chosen: OwnStep;
  /** Method with the shortest measured time. */
  readonly best: OwnStep;
  /** Measured time of the chosen method / measured time of the best method − 1. */
  readonly regret: number;
}

/**
 * Chooses the method of a cell with the shortest predicted time, among the methods that reach the quality of dense
 * training.
 */
export const choiceOf = (cell: readonly OwnStep[]): Choice => {
  const claimed = cell.filter(({ run }) => isClaimed(run));
  const chosen = fastest(claimed, ({ predictedSeconds }) => predictedSeconds);
  const best = fastest(claimed, ({ measured }) => measured.median);
  return { chosen, best, regret: chosen.measured.median / best.measured.median - 1 };
};
