import {
  type LogitsFacts,
  type LossResult,
  lossResult,
  type LossSum,
  type Metrics,
  type Ratio,
  type RunContext,
} from "@skein/models";
import { elementCount, full, type Shard, type Sharding, Tensor } from "@skein/tensor-core";
import { excerpt, formatSpec, leavesByPath } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import { takenNames } from "../evaluation/evaluation-figures.ts";
import { requireLike, requireTensors } from "./checked-tree.ts";
import type { Prediction, AnyModel, BatchTree } from "../task/task.ts";
import { callOwn } from "./user-error.ts";
import { withBatch } from "../task/watched-batch.ts";

/** What is wrong with a result, told with what it must be. */
export const refuse = (what: string, value: unknown, rule: string): never => {
  const isPromise = value instanceof Promise;
  if (isPromise) value.catch(() => undefined); // what it is refused for is told, not what comes of it
  throw new ModuleError(
    `${what} gave ${isPromise ? "a Promise" : Array.isArray(value) ? `a list of ${value.length}` : excerpt(value)}, but must give ${rule}${isPromise ? "; it is traced, which does not wait: take async and await out of it" : ""}`,
  );
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Tensor);

const isScalar = (value: unknown): value is Tensor =>
  value instanceof Tensor && value.rank === 0 && value.dtype === "f32";

/** A loss as a sum and a count, as a user's function returns it. @throws ModuleError for another one. */
const requireSum = (given: Readonly<Record<string, unknown>>, what: string): LossSum => {
  const { sum, count, auxiliary } = given;
  const isKnown = typeof count === "number" && count > 0 && Number.isFinite(count);
  const terms = { sum, ...(!isKnown && { count }), ...(auxiliary !== undefined && { auxiliary }) };
  const bad = Object.entries(terms).find(([, value]) => !isScalar(value));
  if (bad !== undefined)
    throw new ModuleError(
      `${what} gave as ${bad[0]} of its loss ${bad[1] instanceof Tensor ? formatSpec(bad[1]) : excerpt(bad[1])}, but must give { sum, count, auxiliary? }: f32 scalar tensors; count is the number of rows that count, or their weights added up`,
    );
  return { ...(terms as unknown as LossSum), ...(isKnown && { count: full([], count) }) };
};

/** What a user's loss returns: a mean, or a sum and a count. @throws ModuleError for another result. */
const requireLoss = (value: unknown, what: string): LossResult<unknown> => {
  const rule =
    "[loss, state]: the mean over the rows of the batch, an f32 scalar tensor, or { sum, count }; and the state that it was given or a new one";
  if (!Array.isArray(value) || value.length < 2 || value.length > 3 || value[1] === undefined)
    return refuse(what, value, rule);
  const [loss, state, sum] = value as readonly unknown[];
  if (isObject(loss)) return lossResult(requireSum(loss, what), state);
  if (!(loss instanceof Tensor)) return refuse(what, value, rule);
  if (!isScalar(loss))
    throw new ModuleError(
      `${what} gave as loss ${formatSpec(loss)}, but must give ${rule}; take the mean over the rows of the batch`,
    );
  return isObject(sum) ? [loss, state, requireSum(sum, what)] : [loss, state];
};

/** Sums that every model gives: it is judged by its loss. */
const always: readonly string[] = ["lossSum", "count"];

/**
 * Named sums that somebody else has written.
 *
 * @param needed names that must be among them.
 * @throws ModuleError for anything but scalar tensors, and where a needed one is not there.
 */
export const requireSums = (
  given: unknown,
  needed: readonly string[],
  what: string,
): Readonly<Record<string, Tensor>> => {
  const rule = `scalar tensors by name, sums over the rows of the batch that count${needed.length === 0 ? "" : `, ${needed.join(", ")} among them`}`;
  if (!isObject(given)) return refuse(what, given, rule);
  const missing = needed.find((name) => given[name] === undefined);
  if (missing !== undefined)
    throw new ModuleError(
      `${what} gave ${excerpt(Object.keys(given).join(", "))} without ${missing}, but must give ${rule}`,
    );
  for (const [name, sum] of Object.entries(given))
    if (!(sum instanceof Tensor) || sum.rank > 0)
      throw new ModuleError(
        `${what} gave as ${excerpt(name)} ${sum instanceof Tensor ? formatSpec(sum) : excerpt(sum)}, but must give ${rule}`,
      );
  return given as Readonly<Record<string, Tensor>>;
};

/**
 * Figures of somebody else's that are made of sums.
 *
 * @param sums names of these.
 * @throws ModuleError for what is no ratio of two of them, and for a name that a figure of ours has.
 */
export const requireRatios = (
  given: unknown,
  sums: readonly string[],
  what: string,
): Readonly<Record<string, Ratio>> => {
  if (given === undefined) return {};
  if (!isObject(given))
    return refuse(what, given, 'figures by name, such as { error: { sum: "errors", per: "count" } }');
  for (const [name, ratio] of Object.entries(given)) {
    if (!/^[A-Za-z][\w.-]{0,40}$/.test(name) || takenNames.includes(name))
      throw new ModuleError(
        `${what}: the name ${excerpt(name)} ${takenNames.includes(name) ? "is that of a figure that runs have anyway" : "is none: a letter comes first, then letters, digits, dot, dash and underscore"}; use another one`,
      );
    const { sum, per } = (isObject(ratio) ? ratio : {}) as Partial<Ratio>;
    const unknown = [sum, per].find((each) => typeof each !== "string" || !sums.includes(each));
    if (!isObject(ratio) || sum === undefined || per === undefined)
      throw new ModuleError(
        `${what}: ${name} is ${excerpt(ratio)}, but must be { sum, per }, names of two sums; it is their ratio`,
      );
    if (unknown !== undefined)
      throw new ModuleError(
        `${what}: ${name} is made of ${excerpt(unknown)}, but the sums are ${sums.join(", ")}; name one of these`,
      );
  }
  return given as unknown as Readonly<Record<string, Ratio>>;
};

/**
 * A model that somebody else wrote, whose results are looked at when it is traced, once per signature: a missing part
 * is told by its name and not by what fails because of it.
 *
 * @param what names the model in errors. @param folder that its files lie in.
 * @throws ModuleError for what is no model.
 */
export const checkedModel = (model: unknown, predicts: Prediction, what: string, folder: string): AnyModel => {
  const rule = "a model: an object with init, loss and evaluate, such as labelledModel() of @skein/models makes";
  if (!isObject(model)) return refuse(what, model, rule);
  for (const name of ["init", "loss", "evaluate"])
    if (typeof model[name] !== "function")
      throw new ModuleError(`${what}: its ${name} is ${excerpt(model[name])}, but must be a function; give ${rule}`);
  const own = model as unknown as AnyModel;
  const metrics = own.metrics;
  const inside = <T>(name: string, fn: () => T): T => callOwn(`${what}: ${name}`, folder, fn);
  return {
    init: (key) => {
      const made: unknown = inside("init", () => own.init(key));
      if (!isObject(made) || made["params"] === undefined || made["state"] === undefined)
        return refuse(`${what}: init`, made, "{ params, state }; state is {} where the model itself moves nothing");
      requireTensors(made, `${what}: init`);
      requireParameters(made["params"], `${what}: init`);
      return made as ReturnType<AnyModel["init"]>;
    },
    apply: (params, state, inputs, context) => {
      if (typeof own.apply !== "function")
        throw new ModuleError(
          `${what}: its apply is ${excerpt(own.apply)}, but what looks at the model's outputs needs its forward pass; give it apply(params, state, inputs, { train }), a function that gives [outputs, state]`,
        );
      const given: unknown = inside("apply", () => own.apply(params, state, inputs, context));
      if (!Array.isArray(given) || given.length !== 2)
        return refuse(`${what}: apply`, given, "[outputs, state]: a tensor or a tree of tensors, and the state");
      requireTensors(given[0], `${what}: apply`);
      return given as unknown as ReturnType<AnyModel["apply"]>;
    },
    loss: (params: unknown, state: unknown, batch: BatchTree, context: RunContext) => {
      const given: unknown = inside("loss", () =>
        withBatch(batch, (watched) => own.loss(params, state, watched, context)),
      );
      const result = requireLoss(given, `${what}: loss`);
      requireLike(result[1], state, { what: `${what}: loss`, like: "the state that it was given" });
      return result;
    },
    evaluate: (params, state, batch: BatchTree) => {
      const given: unknown = inside("evaluate", () =>
        withBatch(batch, (watched) => own.evaluate(params, state, watched)),
      );
      const sums = requireSums(given, predicts === "classes" ? ["correct", ...always] : always, `${what}: evaluate`);
      requireRatios(metrics, Object.keys(sums), `${what}: its metrics`);
      return sums as unknown as Metrics;
    },
    ...(metrics !== undefined && { metrics }),
    ...(own.logits !== undefined && { logits: checkedLogitsFacts(own.logits, what) }),
    ...(own.sharding !== undefined && { sharding: checkedSharding(own.sharding, what) }),
    ...(own.joinParts !== undefined && {
      needsWhole: own.needsWhole === true,
      joinParts: (parts) => {
        const joined: unknown = inside("joinParts", () => own.joinParts!(parts));
        requireLike(joined, parts.before, { what: `${what}: joinParts`, like: "the state that it was given" });
        return joined;
      },
    }),
    ...(own.figures !== undefined && { figures: (state) => inside("figures", () => own.figures!(state)) }),
  };
};

/** @throws ModuleError for a model that has nothing to train. */
const requireParameters = (params: unknown, what: string): void => {
  const tensors = [...leavesByPath<Tensor>(params)];
  if (tensors.some(([, tensor]) => elementCount(tensor.shape) > 0)) return;
  const [path, empty] = tensors[0] ?? [];
  throw new ModuleError(
    `${what} gave ${empty === undefined ? "no parameters" : `no parameter with an element (${path} is ${formatSpec(empty)})`}, so there is nothing to train; put the tensors that training is to change into params`,
  );
};

/** Facts about logits, as somebody else declares them. */
const checkedLogitsFacts = (logits: unknown, what: string): LogitsFacts => {
  const ignoreIndex: unknown = isObject(logits) ? logits["ignoreIndex"] : undefined;
  if (!isObject(logits) || (ignoreIndex !== undefined && !Number.isInteger(ignoreIndex)))
    return refuse(`${what}: its logits`, logits, "{} or { ignoreIndex }, the label of rows that its loss leaves out");
  return ignoreIndex === undefined ? {} : { ignoreIndex: ignoreIndex as number };
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
