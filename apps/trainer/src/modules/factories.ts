import type { LabelledBatch, Model, Sums } from "@skein/models";
import type { DataSet, Task } from "./task.ts";

/**
 * What the module of `model: { kind: module, file }` exports: makes the model of a task. Called in each rank's thread,
 * with `options` of the job, so it must give the same model each time.
 *
 * @example export default ((task, { hidden = 64 }) => mlp({ sizes: [...task.inputs.shape, hidden, task.classes!] }))
 * satisfies ModelFactory<{ hidden?: number }>;
 */
export type ModelFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  task: Task,
  options: Options,
) => Model<unknown, unknown, LabelledBatch, Sums> | Promise<Model<unknown, unknown, LabelledBatch, Sums>>;

/**
 * What the module of `data: { kind: module, file }` exports: loads the samples. Called once in each process, which must
 * all get the same ones.
 */
export type DataFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  options: Options,
) => DataSet | Promise<DataSet>;
