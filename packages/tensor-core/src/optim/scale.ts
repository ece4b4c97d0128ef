import { add, full, multiply } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber } from "../options.ts";
import { zipTrees } from "../tree.ts";
import { checkSchedule, resolveSchedule, type Schedule } from "./schedule.ts";
import { type EmptyState, type GradientTransformation, stateless } from "./transformation.ts";

const scaleLeaves = <P>(updates: P, factor: Tensor | number): P =>
  zipTrees((update: Tensor) => multiply(update, factor), updates);

/** `factor · u` */
export const scale = (factor: number): GradientTransformation<EmptyState> => {
  checkNumber("scale", "its factor", factor, { from: -Infinity, usual: 0.5 });
  return stateless((updates) => scaleLeaves(updates, factor));
};

export interface ScheduleState {
  /** Updates made so far, i32 scalar. */
  readonly step: Tensor;
}

/** `schedule(step) · u`, counting steps. */
export const scaleBySchedule = (schedule: Schedule): GradientTransformation<ScheduleState> => {
  checkSchedule("scaleBySchedule", "its schedule", schedule, -Infinity);
  return {
    init: () => ({ step: full([], 0, "i32") }),
    update: (updates, { step }) => [scaleLeaves(updates, resolveSchedule(schedule, step)), { step: add(step, 1) }],
  };
};

/**
 * `−learningRate · u`: turn a direction of ascent into a step downhill. The last link of every optimizer. Counts steps
 * for a constant too, so that a resumed run may switch to a schedule.
 *
 * @throws ArgumentError for a rate that is neither a finite number from 0 nor a schedule.
 */
export const scaleByLearningRate = (learningRate: Schedule): GradientTransformation<ScheduleState> => {
  checkSchedule("scaleByLearningRate", "learningRate", learningRate, 0);
  return scaleBySchedule(
    typeof learningRate === "number" ? -learningRate : (step) => multiply(resolveSchedule(learningRate, step), -1),
  );
};
