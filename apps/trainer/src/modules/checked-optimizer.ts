import { add, full, resolveSchedule, type Schedule, type ScheduleState, Tensor, trace } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import { requireLike, requireTensors } from "./checked-tree.ts";
import type { OwnOptimizer } from "./factories.ts";
import { callOwn } from "./user-error.ts";

/** State of an optimizer of a user's. */
interface OwnState extends ScheduleState {
  readonly state: unknown;
}

/** What names a part of a user's in errors, and the folder that its files lie in. */
export interface Origin {
  readonly what: string;
  readonly folder: string;
}

const inside = <T>({ what, folder }: Origin, name: string, fn: () => T): T => callOwn(`${what}: ${name}`, folder, fn);

/**
 * An optimizer that somebody else wrote, whose trees are looked at when it is traced. Its updates are counted beside
 * its state, since the learning rate that people are told follows from their number.
 *
 * @throws ModuleError for what is no optimizer.
 */
export const checkedOptimizer = (made: unknown, origin: Origin): OwnOptimizer => {
  const { what } = origin;
  const rule =
    "an optimizer: an object with init(params) and update(updates, state, { params }), such as chain() of @skein/tensor-core makes";
  const given = (typeof made === "object" && made !== null ? made : {}) as Partial<OwnOptimizer>;
  if (typeof given.init !== "function" || typeof given.update !== "function")
    throw new ModuleError(`${what} gave ${excerpt(made)}, but must give ${rule}`);
  if (given.observe !== undefined)
    throw new ModuleError(
      `${what} gave an optimizer with observe(), but statistics of layers are gathered only for the optimizers that jobs name, such as kfac; leave observe out`,
    );
  if (given.elementwise !== undefined && typeof given.elementwise !== "boolean")
    throw new ModuleError(
      `${what}: its elementwise is ${excerpt(given.elementwise)}, but must be true or false: whether each entry's update depends on that entry alone`,
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
          `${what}: update gave ${Array.isArray(after) ? `a list of ${after.length}` : excerpt(after)}, but must give [updates, state]`,
        );
      const [moved, next] = after as [typeof updates, unknown];
      requireLike(moved, context.params, {
        what: `${what}: update`,
        like: "the parameters, which updates are added to",
      });
      requireLike(next, state, { what: `${what}: update`, like: "the state that it was given" });
      return [moved, { state: next, step: add(step, 1) }];
    },
  };
};

/** A schedule that somebody else wrote, looked at when it is traced. @throws ModuleError for what is none. */
export const checkedSchedule = (made: unknown, origin: Origin): Schedule => {
  const { what } = origin;
  if (typeof made === "number" && Number.isFinite(made) && made >= 0) return made;
  if (typeof made !== "function")
    throw new ModuleError(
      `${what} gave ${excerpt(made)}, but must give a schedule: a number from 0, or a traced function of the step (i32 scalar, 0 after the warm-up) to an f32 scalar`,
    );
  const schedule = (step: Tensor): Tensor => {
    const rate: unknown = inside(origin, "the schedule", () => (made as (step: Tensor) => unknown)(step));
    if (!(rate instanceof Tensor) || rate.rank > 0 || rate.dtype !== "f32")
      throw new ModuleError(
        `${what}: the schedule gave ${rate instanceof Tensor ? `${rate.dtype}[${rate.shape.join(", ")}]` : excerpt(rate)}, but must give an f32 scalar for the step, a Tensor too; compute with functions such as multiply(cast(step, "f32"), 0.01)`,
      );
    return resolveSchedule(() => rate, step);
  };
  trace(schedule, [{ dtype: "i32", shape: [] } as never]); // its faults are its own, not those of what calls it
  return schedule;
};
