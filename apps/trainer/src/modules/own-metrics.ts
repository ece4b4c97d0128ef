import { dirname } from "node:path";
import { type Metrics, type Model, rowMask } from "@skein/models";
import { cast, sum, Tensor, where } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { refuse, requireRatios } from "./checked-model.ts";
import type { OwnMetrics } from "./factories.ts";
import { makeOwn, moduleName } from "./load-module.ts";
import type { Task } from "./task.ts";
import { callOwn } from "./user-error.ts";

/** Sum of what is known of each row that counts; what a row that does not count holds, NaN too, is nowhere. */
const sumOfRows = (rows: Tensor, mask: Tensor | undefined): Tensor => {
  const values = cast(rows, "f32");
  return sum(mask === undefined ? values : where(rowMask(mask, values), values, 0));
};

/**
 * The same model, judged by the figures of a job's own metrics too.
 *
 * @param what names the module in errors. @param folder that its files lie in.
 * @throws ModuleError for what are no metrics, or would hide a sum of the model's.
 */
export const withMetrics = (model: Model, made: unknown, what: string, folder: string): Model => {
  const rule = "metrics: an object with rows(judged), numbers for each row by name, and metrics, ratios of their sums";
  const own = (typeof made === "object" && made !== null ? made : {}) as Partial<OwnMetrics>;
  if (typeof own.rows !== "function" || typeof own.metrics !== "object") return refuse(what, made, rule);
  const { rows, metrics } = own as OwnMetrics;
  if (typeof model.apply !== "function")
    throw new ModuleError(`${what} looks at what the model gives, but the model has no apply; give it one`);
  return {
    ...model,
    metrics: { ...model.metrics, ...metrics },
    evaluate: (params, state, batch) => {
      const sums = model.evaluate(params, state, batch);
      const [logits] = model.apply(params, state, batch.inputs, { train: false });
      const ofRows: unknown = callOwn(`${what}: rows`, folder, () => rows({ logits, batch }));
      if (typeof ofRows !== "object" || ofRows === null || Array.isArray(ofRows) || ofRows instanceof Tensor)
        return refuse(`${what}: rows`, ofRows, "tensors by name, a number for each row of the batch");
      const numRows = batch.inputs.shape[0]!;
      const added = Object.entries(ofRows).map(([name, row]: [string, unknown]) => {
        if (name in sums)
          throw new ModuleError(
            `${what}: rows gave ${excerpt(name)}, a sum that the model has already; use another name`,
          );
        if (!(row instanceof Tensor) || row.rank === 0 || row.shape[0] !== numRows)
          throw new ModuleError(
            `${what}: rows gave as ${excerpt(name)} ${row instanceof Tensor ? `${row.dtype}[${row.shape.join(", ")}]` : excerpt(row)}, but must give a number for each row of the batch, [${numRows}] or [${numRows}, …]; they are added up here, without the rows that only fill the batch up`,
          );
        return [name, sumOfRows(row, batch.mask)] as const;
      });
      const all: Metrics = { ...sums, ...Object.fromEntries(added) };
      requireRatios(metrics, Object.keys(all), `${what}: its metrics`);
      return all;
    },
  };
};

/** The same model, judged by the job's own metrics too, where it names some. @throws ModuleError. */
export const withOwnMetrics = async (model: Model, { metrics }: Pick<Job, "metrics">, task: Task): Promise<Model> =>
  metrics === undefined
    ? model
    : withMetrics(
        model,
        await makeOwn("metrics", metrics, task),
        moduleName("metrics", metrics),
        dirname(metrics.file),
      );
