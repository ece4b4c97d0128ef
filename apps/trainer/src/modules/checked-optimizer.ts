import { ModuleError } from "@skein/cli/node";
import type { OwnOptimizer } from "@skein/step/node";
import { add, full, resolveSchedule, type Schedule, type ScheduleState, Tensor, trace } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import { requireLike, requireTensors } from "./checked-tree.ts";
import { callOwn } from "./user-error.ts";

/** State of a user-defined optimizer, together with the number of updates made. */
interface OwnState extends ScheduleState {
  readonly state: unknown;
}

/** Name of a user object in error messages, and folder of the object's files. */
export interface Origin {
  readonly what: string;
  readonly folder: string;
}

const inside = <T>({ what, folder }: Origin, name: string, fn: () => T): T => callOwn(`${what}: ${name}`, folder, fn);

/**
 * Wraps a user-defined optimizer so that its trees are checked when the optimizer is traced. The wrapper also counts
 * updates in the state, because the reported learning rate depends on the number of updates.
 *
 * @throws ModuleError if the optimizer is invalid.
 */
export const checkedOptimizer = (made: unknown, origin: Origin): OwnOptimizer => {
  const { what } = origin;
  const rule =
    "an optimizer: an object with init(params) and update(updates, state, { params }), such as the result of chain() of @skein/tensor-core";
  const given = (typeof made === "object" && made !== null ? made : {}) as Partial<OwnOptimizer>;
  if (typeof given.init !== "function" || typeof given.update !== "function")
    throw new ModuleError(`${what} returned ${excerpt(made)}, but must return ${rule}`);
  if (given.observe !== undefined)
    throw new ModuleError(
      `${what} returned an optimizer with observe(), but statistics of layers are gathered only for built-in optimizers, such as kfac; remove observe`,
    );
  if (given.elementwise !== undefined && typeof given.elementwise !== "boolean")
    throw new ModuleError(
      `${what}: its elementwise is ${excerpt(given.elementwise)}, but must be true or false: whether each entry's update depends only on that entry`,
    );
  const own = given as OwnOptimizer;
  return {
    elementwise: given.elementwise === true,
    init: (params) => {
      const state = inside(origin, "init", () => own.init(params));
      requireTensors(state, `${what}: init`);
      return { state, step: full([], 0, "i32") };
    },
    update: (updates, before, context) => {
      const { state, step } = before as OwnState;
      const after: unknown = inside(origin, "update", () => own.update(updates, state, context));
      if (!Array.isArray(after) || after.length !== 2)
        throw new ModuleError(
          `${what}: update returned ${Array.isArray(after) ? `a list of ${after.length}` : excerpt(after)}, but must return [updates, state]`,
        );
      const [moved, next] = after as [typeof updates, unknown];
      requireLike(moved, context.params, {
        what: `${what}: update`,
        like: "the parameters, to which updates are added",
      });
      requireLike(next, state, { what: `${what}: update`, like: "the state that it was given" });
      return [moved, { state: next, step: add(step, 1) }];
    },
  };
};

/** Checks a user-defined schedule when it is traced. @throws ModuleError if the schedule is invalid. */
export const checkedSchedule = (made: unknown, origin: Origin): Schedule => {
  const { what } = origin;
  if (typeof made === "number" && Number.isFinite(made) && made >= 0) return made;
  if (typeof made !== "function")
    throw new ModuleError(
      `${what} returned ${excerpt(made)}, but must return a schedule: a number from 0, or a traced function of the step (i32 scalar, 0 after the warm-up) to an f32 scalar`,
    );
  const schedule = (step: Tensor): Tensor => {
    const rate: unknown = inside(origin, "the schedule", () => (made as (step: Tensor) => unknown)(step));
    if (!(rate instanceof Tensor) || rate.rank > 0 || rate.dtype !== "f32")
      throw new ModuleError(
        `${what}: the schedule returned ${rate instanceof Tensor ? `${rate.dtype}[${rate.shape.join(", ")}]` : excerpt(rate)}, but must return an f32 scalar for the step, which is also a Tensor; compute with functions such as multiply(cast(step, "f32"), 0.01)`,
      );
    return resolveSchedule(() => rate, step);
  };
  // Traced here, so that errors of the schedule are not reported as errors of the code that calls the schedule.
  trace(schedule, [{ dtype: "i32", shape: [] } as never]);
  return schedule;
};
