import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import {
  add,
  cast,
  cos,
  divide,
  full,
  less,
  maximum,
  minimum,
  multiply,
  power,
  subtract,
  where,
} from "../functions/elementwise.ts";
import { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";

/**
 * Hyperparameter that may change between steps: a number, or a traced function from the step number (i32 scalar, 0 at
 * the first update) to an f32 scalar.
 */
export type Schedule = number | ((step: Tensor) => Tensor);

/** Throws ArgumentError unless a schedule is a function, or a finite number of at least `from`. */
export const checkSchedule = (fn: string, name: string, schedule: Schedule, from: number): void => {
  if (typeof schedule === "number") checkNumber(fn, name, schedule, { from, usual: 0.001 });
  else if (typeof schedule !== "function")
    throw new ArgumentError(
      `${fn}: ${name} is ${describe(schedule)}, but it must be a number or a schedule; use for example 0.001 or cosineDecay({ initial: 0.001, steps: 1000 })`,
    );
};

/**
 * Returns the value of a schedule at `step`, f32 scalar.
 *
 * @example
 * ```ts
 * const rate = (step: Tensor) => resolveSchedule(0.1, step);
 * const at50 = await evaluate(rate, referenceBackend())(NdArray.from([50], [], "i32"));
 * console.log(at50.item().toFixed(3)); // 0.100
 * ```
 */
export const resolveSchedule = (schedule: Schedule, step: Tensor): Tensor => {
  if (typeof schedule === "number") return full([], schedule);
  const value = schedule(step);
  if (!(value instanceof Tensor) || value.rank !== 0)
    throw new ArgumentError(
      `a schedule returned ${describe(value)}, but it must return an f32 scalar Tensor; compute with functions such as multiply(cast(step, "f32"), 0.01)`,
    );
  return value;
};

const requireSteps = (name: string, steps: number): void => {
  if (!Number.isInteger(steps) || steps < 1)
    throw new ArgumentError(`${name}: ${steps} steps were given; use an integer from 1`);
};

/** Returns the completed fraction of the schedule, min(step / steps, 1), f32. */
const progress = (step: Tensor, steps: number): Tensor => minimum(multiply(cast(step, "f32"), 1 / steps), 1);

/**
 * Creates a linear ramp from `from` at step 0 to `to` at step `steps`; constant `to` afterwards.
 *
 * @example
 * ```ts
 * const rate = (step: Tensor) => resolveSchedule(linearRamp({ from: 0, to: 0.1, steps: 100 }), step);
 * const at50 = await evaluate(rate, referenceBackend())(NdArray.from([50], [], "i32"));
 * console.log(at50.item().toFixed(3)); // 0.050
 * ```
 */
export const linearRamp = (options: {
  readonly from: number;
  readonly to: number;
  readonly steps: number;
}): Schedule => {
  const { from, to, steps } = checkOptions("linearRamp()", options, { from: true, to: true, steps: true });
  checkNumber("linearRamp", "from", from, { from: -Infinity, usual: 0 });
  checkNumber("linearRamp", "to", to, { from: -Infinity, usual: 0.001 });
  requireSteps("linearRamp", steps);
  return (step) => add(multiply(progress(step, steps), to - from), from);
};

/**
 * Creates a cosine decay from `initial` at step 0 to `final` (default: 0) at step `steps`, constant `final` afterwards:
 * `final + (initial − final) · (1 + cos(π·step/steps)) / 2`.
 *
 * @example
 * ```ts
 * const rate = (step: Tensor) => resolveSchedule(cosineDecay({ initial: 0.1, steps: 100 }), step);
 * const at50 = await evaluate(rate, referenceBackend())(NdArray.from([50], [], "i32"));
 * console.log(at50.item().toFixed(3)); // 0.050
 * ```
 * Source: Loshchilov and Hutter 2017, arXiv 1608.03983 (without restarts).
 */
export const cosineDecay = (options: {
  readonly initial: number;
  readonly steps: number;
  readonly final?: number;
}): Schedule => {
  const {
    initial,
    steps,
    final = 0,
  } = checkOptions("cosineDecay()", options, { initial: true, steps: true, final: true });
  checkNumber("cosineDecay", "initial", initial, { from: -Infinity, usual: 0.001 });
  checkNumber("cosineDecay", "final", final, { from: -Infinity, usual: 0 });
  requireSteps("cosineDecay", steps);
  return (step) => add(multiply(add(cos(multiply(progress(step, steps), Math.PI)), 1), (initial - final) / 2), final);
};

/**
 * Creates a stepwise decay, `initial · factor^⌊step / every⌋`.
 *
 * @example
 * ```ts
 * const rate = (step: Tensor) => resolveSchedule(stepDecay({ initial: 0.1, factor: 0.5, every: 25 }), step);
 * const at50 = await evaluate(rate, referenceBackend())(NdArray.from([50], [], "i32"));
 * console.log(at50.item().toFixed(3)); // 0.025
 * ```
 */
export const stepDecay = (options: {
  readonly initial: number;
  readonly factor: number;
  readonly every: number;
}): Schedule => {
  const { initial, factor, every } = checkOptions("stepDecay()", options, { initial: true, factor: true, every: true });
  checkNumber("stepDecay", "initial", initial, { from: -Infinity, usual: 0.001 });
  requireSteps("stepDecay", every);
  if (!(factor > 0 && factor < Infinity))
    throw new ArgumentError(`stepDecay: factor ${factor} is not positive; use a factor such as 0.1`);
  return (step) => multiply(power(factor, cast(divide(step, every), "f32")), initial);
};

/**
 * Creates a polynomial decay from `initial` at step 0 to `final` (default: 0) at step `steps`, constant `final`
 * afterwards: `final + (initial − final) · (1 − step/steps)^power`; power 1 is linear.
 *
 * @throws ArgumentError unless `power` is above 0.
 * @example
 * ```ts
 * const rate = (step: Tensor) => resolveSchedule(polynomialDecay({ initial: 0.1, steps: 100, power: 2 }), step);
 * const at50 = await evaluate(rate, referenceBackend())(NdArray.from([50], [], "i32"));
 * console.log(at50.item().toFixed(3)); // 0.025
 * ```
 */
export const polynomialDecay = (options: {
  readonly initial: number;
  readonly steps: number;
  readonly power: number;
  readonly final?: number;
}): Schedule => {
  const {
    initial,
    steps,
    power: exponent,
    final = 0,
  } = checkOptions("polynomialDecay()", options, { initial: true, steps: true, power: true, final: true });
  checkNumber("polynomialDecay", "initial", initial, { from: -Infinity, usual: 0.001 });
  checkNumber("polynomialDecay", "final", final, { from: -Infinity, usual: 0 });
  requireSteps("polynomialDecay", steps);
  if (!(exponent > 0 && exponent < Infinity))
    throw new ArgumentError(`polynomialDecay: power ${exponent} is not positive; use a power such as 2`);
  return (step) => add(multiply(power(subtract(1, progress(step, steps)), exponent), initial - final), final);
};

/**
 * Concatenates schedules: `schedules[i]` applies from step `boundaries[i - 1]` (inclusive) to step `boundaries[i]`
 * (exclusive). Each schedule receives step numbers relative to its start.
 *
 * @throws ArgumentError unless the boundaries increase and their number is one less than the number of schedules.
 * @example
 * ```ts
 * const schedule = joinSchedules([linearRamp({ from: 0, to: 0.1, steps: 10 }), 0.2], [10]);
 * const rate = (step: Tensor) => resolveSchedule(schedule, step);
 * const at50 = await evaluate(rate, referenceBackend())(NdArray.from([50], [], "i32"));
 * console.log(at50.item().toFixed(3)); // 0.200
 * ```
 */
export const joinSchedules = (schedules: readonly Schedule[], boundaries: readonly number[]): Schedule => {
  if (!Array.isArray(schedules) || !Array.isArray(boundaries))
    throw new ArgumentError(
      `joinSchedules: its schedules are ${describe(schedules)}, its boundaries ${describe(boundaries)}; pass two lists: joinSchedules([a, b], [1000])`,
    );
  schedules.forEach((schedule, i) => checkSchedule("joinSchedules", `schedule ${i + 1}`, schedule, -Infinity));
  if (schedules.length === 0 || boundaries.length !== schedules.length - 1) {
    throw new ArgumentError(
      `joinSchedules: ${schedules.length} schedules and ${boundaries.length} boundaries were given; pass one boundary between each two schedules`,
    );
  }
  if (boundaries.some((boundary, i) => !(boundary > (boundaries[i - 1] ?? 0)))) {
    throw new ArgumentError(
      `joinSchedules: the boundaries [${boundaries.join(", ")}] do not increase from above 0; put them in order`,
    );
  }
  return (step) =>
    schedules
      .slice(1)
      .reduce<Tensor>(
        (value, schedule, i) =>
          where(less(step, boundaries[i]!), value, resolveSchedule(schedule, subtract(step, boundaries[i]!))),
        resolveSchedule(schedules[0]!, step),
      );
};

/**
 * Creates a linear warm-up over the first `steps` steps, followed by `schedule`, which begins at its step 0. During the
 * warm-up, the value is `schedule(0) · (step + 1) / (steps + 1)`, which is nonzero at the first step.
 *
 * @example
 * ```ts
 * const rate = (step: Tensor) => resolveSchedule(warmUp(100, 0.1), step);
 * const at50 = await evaluate(rate, referenceBackend())(NdArray.from([50], [], "i32"));
 * console.log(at50.item().toFixed(3)); // 0.050
 * ```
 * Source: Goyal et al. 2017, arXiv 1706.02677, §2.2.
 */
export const warmUp = (steps: number, schedule: Schedule): Schedule => {
  checkSchedule("warmUp", "its schedule", schedule, -Infinity);
  if (steps === 0) return schedule;
  requireSteps("warmUp", steps);
  return (step) =>
    multiply(progress(add(step, 1), steps + 1), resolveSchedule(schedule, maximum(subtract(step, steps), 0)));
};
