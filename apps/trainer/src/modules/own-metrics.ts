import { dirname } from "node:path";
import { ModuleError } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { inputsOf, type Metrics, sumOfRows } from "@skein/models";
import { type AnyModel, type BatchTree, type Task, withBatch } from "@skein/step/node";
import { flattenTree, Tensor } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import { refuse, requireRatios } from "./checked-model.ts";
import { checkedMetrics } from "./checked-metrics.ts";
import { givenName, failWithoutProgram } from "./program-objects.ts";
import { makeOwn, moduleName } from "./load-module.ts";
import type { ProgramParts } from "./program-parts.ts";
import { callOwn } from "./user-error.ts";

/**
 * Adds user-defined metrics to a model.
 *
 * @param what name of the module in errors. @param folder folder of the module's files.
 * @throws ModuleError if the metrics are invalid, or if a sum has the name of a sum of the model.
 */
export const withMetrics = (model: AnyModel, made: unknown, what: string, folder: string): AnyModel => {
  const own = checkedMetrics(made, what);
  const { metrics } = own;
  return {
    ...model,
    metrics: { ...model.metrics, ...metrics },
    evaluate: (params, state, batch: BatchTree) => {
      const sums = model.evaluate(params, state, batch);
      const [logits] = model.apply(params, state, inputsOf(batch), { train: false });
      const rowValues: unknown = callOwn(`${what}: rows`, folder, () =>
        withBatch(batch, (watched) => own.rows({ logits, batch: watched } as never)),
      );
      if (
        typeof rowValues !== "object" ||
        rowValues === null ||
        Array.isArray(rowValues) ||
        rowValues instanceof Tensor
      )
        return refuse(`${what}: rows`, rowValues, "tensors by name, numbers for each row of the batch");
      const numRows = flattenTree<Tensor>(batch).leaves[0]!.shape[0]!;
      const mask = batch["mask"] as Tensor | undefined;
      const added = Object.entries(rowValues).map(([name, row]: [string, unknown]) => {
        if (name in sums)
          throw new ModuleError(
            `${what}: rows returned ${excerpt(name)}, but the model already has a sum of that name; use another name`,
          );
        if (!(row instanceof Tensor) || row.rank === 0 || row.shape[0] !== numRows)
          throw new ModuleError(
            `${what}: rows returned as ${excerpt(name)} ${row instanceof Tensor ? `${row.dtype}[${row.shape.join(", ")}]` : excerpt(row)}, but must return numbers for each row of the batch, [${numRows}] or [${numRows}, …]; they are summed over the unmasked rows`,
          );
        return [name, sumOfRows(row, mask)] as const;
      });
      const all: Metrics = { ...sums, ...Object.fromEntries(added) };
      requireRatios(metrics, Object.keys(all), `${what}: its metrics`);
      return all;
    },
  };
};

/**
 * Adds the user-defined metrics of a job to a model. Returns the model unchanged if the job has no user-defined
 * metrics.
 *
 * @param program objects that a program passed, if the job uses objects of the program.
 * @throws ModuleError.
 */
export const withOwnMetrics = async (
  model: AnyModel,
  { metrics }: Pick<Job, "metrics">,
  task: Task,
  program?: ProgramParts,
): Promise<AnyModel> => {
  if (metrics === undefined) return model;
  return metrics.kind === "program"
    ? withMetrics(
        model,
        await (program ?? failWithoutProgram("metrics")).metrics(task),
        givenName("metrics"),
        process.cwd(),
      )
    : withMetrics(
        model,
        await makeOwn("metrics", metrics, task),
        moduleName("metrics", metrics),
        dirname(metrics.file),
      );
};
