import type { Figures } from "../studies/outcome.ts";
import type { Stage } from "./stages.ts";

type StageSeconds = NonNullable<Figures["stageSeconds"]>;

/** Columns of the stage table. Each column has a title, and shows the sum of the times of its stages. */
export const stageColumns: readonly (readonly [title: string, ...stages: readonly Stage[]])[] = [
  ["both passes", "passes"],
  ["statistics", "factors"],
  ["inverses", "inverses"],
  ["preconditioning and update", "precondition", "update"],
  ["gradients travel", "gradientCommunication"],
  ["statistics travel", "factorCommunication"],
  ["inverses travel", "inverseCommunication"],
  ["directions travel", "preconditionedCommunication"],
  ["rest", "rest"],
];

export const secondsOfStages = (of: StageSeconds, stages: readonly string[]): number =>
  stages.reduce((sum, stage) => sum + (of[stage]?.median ?? 0), 0);

export const shareHeader: readonly string[] = ["ms per step", ...stageColumns.map(([title]) => title)];

/** Returns the cells of a traced step: its time in milliseconds, and each column's percentage of the step. */
export const shareCells = (of: StageSeconds): string[] => {
  const whole = secondsOfStages(of, Object.keys(of));
  return [
    (1000 * whole).toPrecision(3),
    ...stageColumns.map(([, ...stages]) => {
      const share = secondsOfStages(of, stages) / whole;
      return share === 0 ? "–" : (100 * share).toFixed(1);
    }),
  ];
};
