import { add, full, multiply } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber } from "../options.ts";
import { zipTrees } from "../tree.ts";
import { checkSchedule, resolveSchedule, type Schedule } from "./schedule.ts";
import { type EmptyState, type GradientTransformation, stateless } from "./transformation.ts";

const scaleLeaves = <P>(updates: P, factor: Tensor | number): P =>
  zipTrees((update: Tensor) => multiply(update, factor), updates);

/**
 * Multiplies updates by `factor`: `factor · u`.
 *
 * @example
 * ```ts
 * const optimizer = scale(-0.1);
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const scale = (factor: number): GradientTransformation<EmptyState> => {
  checkNumber("scale", "its factor", factor, { from: -Infinity, usual: 0.5 });
  return stateless((updates) => scaleLeaves(updates, factor));
};

export interface ScheduleState {
  /** Number of completed updates, i32 scalar. */
  readonly step: Tensor;
}

/**
 * Multiplies updates by a schedule: `schedule(step) · u`. The state contains the step number.
 *
 * @example
 * ```ts
 * const optimizer = scaleBySchedule(-0.1);
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const scaleBySchedule = (schedule: Schedule): GradientTransformation<ScheduleState> => {
  checkSchedule("scaleBySchedule", "its schedule", schedule, -Infinity);
  return {
    init: () => ({ step: full([], 0, "i32") }),
    update: (updates, { step }) => [scaleLeaves(updates, resolveSchedule(schedule, step)), { step: add(step, 1) }],
  };
};

/**
 * Multiplies updates by the negative learning rate, `−learningRate · u`, which converts a gradient direction to a
 * descent step. The last transformation of every optimizer. Counts steps even if the rate is constant, so that a
 * resumed run can switch to a schedule.
 *
 * @throws ArgumentError if the rate is neither a finite non-negative number nor a schedule.
 * @example
 * ```ts
 * const optimizer = scaleByLearningRate(0.1);
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const scaleByLearningRate = (learningRate: Schedule): GradientTransformation<ScheduleState> => {
  checkSchedule("scaleByLearningRate", "learningRate", learningRate, 0);
  return scaleBySchedule(
    typeof learningRate === "number" ? -learningRate : (step) => multiply(resolveSchedule(learningRate, step), -1),
  );
};
