import type { LabelledBatch, Metrics, Model, RunContext } from "@skein/models";
import { full, type Shard, type Sharding, Tensor } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import type { Prediction } from "./task.ts";
import { userError } from "./user-error.ts";

/** What is wrong with a result, told with what it must be. */
const refuse = (what: string, value: unknown, rule: string): never => {
  throw new ModuleError(
    `${what} gave ${Array.isArray(value) ? `a list of ${value.length}` : excerpt(value)}, but must give ${rule}`,
  );
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Tensor);

/** A pair whose first member is a tensor. */
const requirePair = (value: unknown, what: string, rule: string): readonly [Tensor, unknown] =>
  Array.isArray(value) && value.length === 2 && value[0] instanceof Tensor && value[1] !== undefined
    ? (value as unknown as readonly [Tensor, unknown])
    : refuse(what, value, rule);

/**
 * A model that somebody else wrote, whose results are looked at when it is traced, once per signature: a missing part
 * is told by its name and not by what fails because of it.
 *
 * @param what names the model in errors. @param folder that its files lie in.
 * @throws ModuleError for what is no model.
 */
export const checkedModel = (model: unknown, predicts: Prediction, what: string, folder: string): Model => {
  const rule = "a model: an object with init, loss and evaluate, such as labelledModel() of @skein/models makes";
  if (!isObject(model)) return refuse(what, model, rule);
  for (const name of ["init", "loss", "evaluate"])
    if (typeof model[name] !== "function")
      throw new ModuleError(`${what}: its ${name} is ${excerpt(model[name])}, but must be a function; give ${rule}`);
  const own = model as unknown as Model;
  const inside = <T>(name: string, fn: () => T): T => {
    try {
      return fn();
    } catch (error) {
      throw userError(error, `${what}: ${name}`, folder);
    }
  };
  return {
    init: (key) => {
      const made: unknown = inside("init", () => own.init(key));
      if (!isObject(made) || made["params"] === undefined || made["state"] === undefined)
        return refuse(`${what}: init`, made, "{ params, state }; state is {} where the model itself moves nothing");
      return made as ReturnType<Model["init"]>;
    },
    apply: (params, state, inputs, context) => inside("apply", () => own.apply(params, state, inputs, context)),
    loss: (params: unknown, state: unknown, batch: LabelledBatch, context: RunContext) => {
      const given: unknown = inside("loss", () => own.loss(params, state, batch, context));
      return requirePair(
        given,
        `${what}: loss`,
        "[loss, state]: a scalar tensor, and the state that it was given or a new one",
      );
    },
    evaluate: (params, state, batch) => {
      const given: unknown = inside("evaluate", () => own.evaluate(params, state, batch));
      const needed =
        predicts === "values" ? (["lossSum", "count"] as const) : (["correct", "lossSum", "count"] as const);
      if (!isObject(given) || needed.some((name) => !(given[name] instanceof Tensor)))
        return refuse(
          `${what}: evaluate`,
          given,
          `{ ${needed.join(", ")} }, scalar tensors: sums over the rows of the batch that count`,
        );
      return { correct: full([], 0), ...given } as unknown as Metrics;
    },
    ...(own.sharding !== undefined && { sharding: checkedSharding(own.sharding, what) }),
    ...(own.figures !== undefined && { figures: (state) => inside("figures", () => own.figures!(state)) }),
  };
};

const isShard = (shard: unknown): boolean =>
  isObject(shard) &&
  typeof shard["axis"] === "string" &&
  Number.isInteger(shard["dim"]) &&
  (shard["dim"] as number) >= 0;

/** How parameters are shared out, as somebody else says it. */
const checkedSharding = (sharding: unknown, what: string): Sharding => {
  const rule =
    "a list of { axis, dim }, an axis of the mesh and a dimension from 0; an empty one for a parameter that every rank has whole";
  if (typeof sharding !== "function")
    return refuse(`${what}: its sharding`, sharding, `a function of paths that gives ${rule}`);
  return (path) => {
    const shards: unknown = sharding(path);
    return Array.isArray(shards) && shards.every(isShard)
      ? (shards as readonly Shard[])
      : refuse(`${what}: sharding of ${path}`, shards, rule);
  };
};
