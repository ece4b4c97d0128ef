import { ArgumentError } from "../errors.ts";
import { add, cast, cos, divide, full, less, maximum, minimum, multiply, power, subtract, where } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * A hyper-parameter that may change from step to step: a number, or a traced function of the step (i32 scalar, 0 at the
 * first update) to an f32 scalar.
 */
export type Schedule = number | ((step: Tensor) => Tensor);

/** The value of a schedule at `step`, f32 scalar. The one place that asks whether a schedule is a number. */
export const resolveSchedule = (schedule: Schedule, step: Tensor): Tensor =>
  typeof schedule === "number" ? full([], schedule) : schedule(step);

const requireSteps = (name: string, steps: number): void => {
  if (!Number.isInteger(steps) || steps < 1) throw new ArgumentError(`${name}: ${steps} steps were given; use an integer from 1`);
};

/** min(step / steps, 1), f32. */
const progress = (step: Tensor, steps: number): Tensor => minimum(multiply(cast(step, "f32"), 1 / steps), 1);

/** Straight line from `from` at step 0 to `to` at step `steps`, `to` ever after. */
export const linearRamp = ({ from, to, steps }: { readonly from: number; readonly to: number; readonly steps: number }): Schedule => {
  requireSteps("linearRamp", steps);
  return (step) => add(multiply(progress(step, steps), to - from), from);
};

/**
 * Half a cosine wave from `initial` at step 0 to `final` (default 0) at step `steps`, `final` ever after:
 * `final + (initial − final) · (1 + cos(π·step/steps)) / 2`.
 *
 * Source: Loshchilov and Hutter 2017, arXiv 1608.03983 (without restarts).
 */
export const cosineDecay = ({
  initial,
  steps,
  final = 0,
}: {
  readonly initial: number;
  readonly steps: number;
  readonly final?: number;
}): Schedule => {
  requireSteps("cosineDecay", steps);
  return (step) => add(multiply(add(cos(multiply(progress(step, steps), Math.PI)), 1), (initial - final) / 2), final);
};

/** `initial · factor^⌊step / every⌋` */
export const stepDecay = ({
  initial,
  factor,
  every,
}: {
  readonly initial: number;
  readonly factor: number;
  readonly every: number;
}): Schedule => {
  requireSteps("stepDecay", every);
  if (!(factor > 0)) throw new ArgumentError(`stepDecay: factor ${factor} is not positive; use a factor such as 0.1`);
  return (step) => multiply(power(factor, cast(divide(step, every), "f32")), initial);
};

/**
 * One schedule after another: `schedules[i]` runs from `boundaries[i - 1]` up to, not including, `boundaries[i]`, and counts its
 * steps from its own beginning.
 *
 * @throws ArgumentError unless there is one boundary less than schedules, and they increase.
 * @example joinSchedules([linearRamp({ from: 0, to: 0.1, steps: 100 }), cosineDecay({ initial: 0.1, steps: 900 })], [100])
 */
export const joinSchedules = (schedules: readonly Schedule[], boundaries: readonly number[]): Schedule => {
  if (schedules.length === 0 || boundaries.length !== schedules.length - 1) {
    throw new ArgumentError(
      `joinSchedules: ${schedules.length} schedules and ${boundaries.length} boundaries were given; give one boundary between each two schedules`,
    );
  }
  if (boundaries.some((boundary, i) => boundary <= (boundaries[i - 1] ?? 0))) {
    throw new ArgumentError(`joinSchedules: the boundaries [${boundaries.join(", ")}] do not increase from above 0; put them in order`);
  }
  return (step) =>
    schedules
      .slice(1)
      .reduce<Tensor>(
        (value, schedule, i) => where(less(step, boundaries[i]!), value, resolveSchedule(schedule, subtract(step, boundaries[i]!))),
        resolveSchedule(schedules[0]!, step),
      );
};

/**
 * Rise in a straight line over the first `steps` steps, then follow `schedule` from its beginning. The first step already
 * moves: `schedule(0) · (step + 1) / (steps + 1)`.
 *
 * Source: Goyal et al. 2017, arXiv 1706.02677, §2.2.
 */
export const warmUp = (steps: number, schedule: Schedule): Schedule => {
  if (steps === 0) return schedule;
  requireSteps("warmUp", steps);
  return (step) => multiply(progress(add(step, 1), steps + 1), resolveSchedule(schedule, maximum(subtract(step, steps), 0)));
};
