import { ModuleError } from "@skein/cli/node";
import {
  type LogitsFacts,
  type LossResult,
  lossResult,
  type LossSum,
  type Metrics,
  type Ratio,
  type RunContext,
} from "@skein/models";
import { reservedNames } from "@skein/run-files/node";
import { type AnyModel, type BatchTree, type Prediction, withBatch } from "@skein/step/node";
import { elementCount, full, type Shard, type Sharding, Tensor } from "@skein/tensor-core";
import { excerpt, formatSpec, leavesByPath } from "@skein/tensor-core/backend";
import { requireLike, requireTensors } from "./checked-tree.ts";
import { callOwn } from "./user-error.ts";

/** Throws a ModuleError with an invalid value and the violated rule. */
export const refuse = (what: string, value: unknown, rule: string, verb: "return" | "be" = "return"): never => {
  const isPromise = value instanceof Promise;
  if (isPromise) value.catch(() => undefined); // ignores the promise's rejection, because the error reports the promise
  throw new ModuleError(
    `${what} ${verb === "be" ? "is" : "returned"} ${isPromise ? "a Promise" : Array.isArray(value) ? `a list of ${value.length}` : excerpt(value)}, but must ${verb} ${rule}${isPromise ? "; the function is traced, and tracing does not wait: remove async and await" : ""}`,
  );
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Tensor);

const isScalar = (value: unknown): value is Tensor =>
  value instanceof Tensor && value.rank === 0 && value.dtype === "f32";

/** Checks a loss that a user function returned as `sum` and `count`. @throws ModuleError if the loss is invalid. */
const requireSum = (given: Readonly<Record<string, unknown>>, what: string): LossSum => {
  const { sum, count, auxiliary } = given;
  const isKnown = typeof count === "number" && count > 0 && Number.isFinite(count);
  const terms = { sum, ...(!isKnown && { count }), ...(auxiliary !== undefined && { auxiliary }) };
  const bad = Object.entries(terms).find(([, value]) => !isScalar(value));
  if (bad !== undefined)
    throw new ModuleError(
      `${what} returned as ${bad[0]} of its loss ${bad[1] instanceof Tensor ? formatSpec(bad[1]) : excerpt(bad[1])}, but must return { sum, count, auxiliary? }: f32 scalar tensors; count is the number of unmasked rows, or the sum of their weights`,
    );
  return { ...(terms as unknown as LossSum), ...(isKnown && { count: full([], count) }) };
};

/**
 * Checks the result of a user-defined loss: a mean, or a sum and a count. @throws ModuleError if the result is neither
 * a mean nor a sum with a count.
 */
const requireLoss = (value: unknown, what: string): LossResult<unknown> => {
  const rule =
    "[loss, state]: the mean over the rows of the batch, an f32 scalar tensor, or { sum, count }; and the given state or a new one";
  if (!Array.isArray(value) || value.length < 2 || value.length > 3 || value[1] === undefined)
    return refuse(what, value, rule);
  const [loss, state, sum] = value as readonly unknown[];
  if (isObject(loss)) return lossResult(requireSum(loss, what), state);
  if (!(loss instanceof Tensor)) return refuse(what, value, rule);
  if (!isScalar(loss))
    throw new ModuleError(
      `${what} returned as loss ${formatSpec(loss)}, but must return ${rule}; take the mean over the rows of the batch`,
    );
  return isObject(sum) ? [loss, state, requireSum(sum, what)] : [loss, state];
};

/** Names of the sums that the evaluation of every model must return, because every model is evaluated by its loss. */
const always: readonly string[] = ["lossSum", "count"];

/**
 * Checks named sums that user code returned.
 *
 * @param needed required names.
 * @throws ModuleError if a value is not a scalar tensor, or if a required name is missing.
 */
export const requireSums = (
  given: unknown,
  needed: readonly string[],
  what: string,
): Readonly<Record<string, Tensor>> => {
  const rule = `scalar tensors by name, sums over the unmasked rows of the batch${needed.length === 0 ? "" : `, including ${needed.join(", ")}`}`;
  if (!isObject(given)) return refuse(what, given, rule);
  const missing = needed.find((name) => given[name] === undefined);
  if (missing !== undefined)
    throw new ModuleError(
      `${what} returned ${excerpt(Object.keys(given).join(", "))} without ${missing}, but must return ${rule}`,
    );
  for (const [name, sum] of Object.entries(given))
    if (!(sum instanceof Tensor) || sum.rank > 0)
      throw new ModuleError(
        `${what} returned as ${excerpt(name)} ${sum instanceof Tensor ? formatSpec(sum) : excerpt(sum)}, but must return ${rule}`,
      );
  return given as Readonly<Record<string, Tensor>>;
};

/**
 * Checks metrics that user code defines as ratios of sums.
 *
 * @param sums names of the sums.
 * @throws ModuleError if a metric is not a ratio of two sums, or has a reserved name.
 */
export const requireRatios = (
  given: unknown,
  sums: readonly string[],
  what: string,
): Readonly<Record<string, Ratio>> => {
  if (given === undefined) return {};
  if (!isObject(given))
    return refuse(what, given, 'figures by name, such as { error: { sum: "errors", per: "count" } }', "be");
  for (const [name, ratio] of Object.entries(given)) {
    if (!/^[A-Za-z][\w.-]{0,40}$/.test(name) || reservedNames.includes(name))
      throw new ModuleError(
        `${what}: the name ${excerpt(name)} ${reservedNames.includes(name) ? "is reserved for a built-in figure" : "is not valid: it must begin with a letter, followed by letters, digits, dots, dashes and underscores"}; use another name`,
      );
    const { sum, per } = (isObject(ratio) ? ratio : {}) as Partial<Ratio>;
    const unknown = [sum, per].find((each) => typeof each !== "string" || !sums.includes(each));
    if (!isObject(ratio) || sum === undefined || per === undefined)
      throw new ModuleError(
        `${what}: ${name} is ${excerpt(ratio)}, but must be { sum, per }, names of two sums; the figure is their ratio`,
      );
    if (unknown !== undefined)
      throw new ModuleError(
        `${what}: ${name} uses ${excerpt(unknown)}, but the sums are ${sums.join(", ")}; name one of these`,
      );
  }
  return given as unknown as Readonly<Record<string, Ratio>>;
};

/**
 * Wraps a user model so that results are checked when the model is traced, once per signature. A missing function is
 * reported by name, instead of failing later.
 *
 * @param what name of the model in errors. @param folder folder of the model's files.
 * @throws ModuleError if the model is invalid.
 */
export const checkedModel = (model: unknown, predicts: Prediction, what: string, folder: string): AnyModel => {
  const rule =
    "a model: an object with init, loss and evaluate, such as the result of labelledModel() of @skein/models";
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
        return refuse(`${what}: init`, made, "{ params, state }; state is {} if the model has no state");
      requireTensors(made, `${what}: init`);
      requireParameters(made["params"], `${what}: init`);
      return made as ReturnType<AnyModel["init"]>;
    },
    apply: (params, state, inputs, context) => {
      if (typeof own.apply !== "function")
        throw new ModuleError(
          `${what}: its apply is ${excerpt(own.apply)}, but functions that read the model's outputs need its forward pass; define apply(params, state, inputs, { train }), a function that returns [outputs, state]`,
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

/** Requires that a model has trainable parameters. @throws ModuleError. */
const requireParameters = (params: unknown, what: string): void => {
  const tensors = [...leavesByPath<Tensor>(params)];
  if (tensors.some(([, tensor]) => elementCount(tensor.shape) > 0)) return;
  const [path, empty] = tensors[0] ?? [];
  throw new ModuleError(
    `${what} returned ${empty === undefined ? "no parameters" : `no parameter with an element (${path} is ${formatSpec(empty)})`}, so there is nothing to train; put the trainable tensors into params`,
  );
};

/** Checks the properties of logits that user code declares. */
const checkedLogitsFacts = (logits: unknown, what: string): LogitsFacts => {
  const ignoreIndex: unknown = isObject(logits) ? logits["ignoreIndex"] : undefined;
  if (!isObject(logits) || (ignoreIndex !== undefined && !Number.isInteger(ignoreIndex)))
    return refuse(
      `${what}: its logits`,
      logits,
      "{} or { ignoreIndex }, the label of rows that its loss ignores",
      "be",
    );
  return ignoreIndex === undefined ? {} : { ignoreIndex: ignoreIndex as number };
};

const isShard = (shard: unknown): boolean =>
  isObject(shard) &&
  typeof shard["axis"] === "string" &&
  Number.isInteger(shard["dim"]) &&
  (shard["dim"] as number) >= 0;

/** Checks the sharding of parameters that user code declares. */
const checkedSharding = (sharding: unknown, what: string): Sharding => {
  const rule =
    "a list of { axis, dim }, an axis of the mesh and a dimension from 0; an empty list for a parameter that every rank holds whole";
  if (typeof sharding !== "function")
    return refuse(`${what}: its sharding`, sharding, `a function of paths that returns ${rule}`, "be");
  return (path) => {
    const shards: unknown = sharding(path);
    return Array.isArray(shards) && shards.every(isShard)
      ? (shards as readonly Shard[])
      : refuse(`${what}: sharding of ${path}`, shards, rule);
  };
};
