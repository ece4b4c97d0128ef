import type { LabelledBatch, Model, Sums } from "@skein/models";
import type { DataFactory, ModelFactory } from "./factories.ts";
import type { ModuleKey } from "./module-keys.ts";
import type { SchemaOutput, StandardSchema } from "./standard-schema.ts";
import type { DataSet, Task } from "./task.ts";

/** What a helper knows of a factory that it has typed. */
interface Definition {
  readonly key: ModuleKey;
  readonly options: StandardSchema | undefined;
}

/** Found on a factory even where its module has another copy of this file than the program. */
const definition: unique symbol = Symbol.for("skein-train.definition") as never;

/** What is known of a function, if a helper has made it. */
export const definitionOf = (factory: object): Definition | undefined =>
  (factory as { readonly [definition]?: Definition })[definition];

const define = <Create extends (...args: never[]) => unknown>(
  key: ModuleKey,
  { options, create }: { readonly options?: StandardSchema | undefined; readonly create: Create },
): Create =>
  Object.assign(((...args: never[]) => create(...args)) as Create, {
    [definition]: { key, options } satisfies Definition,
  });

/** Options of a job that no schema looks at. */
type AnyOptions = StandardSchema<unknown, Readonly<Record<string, unknown>>>;

/** What the factory of a helper is given of a job's options: what its schema makes of them. */
type OptionsOf<Schema extends StandardSchema> = SchemaOutput<Schema> & object;

/** A function that makes something of a user's, and the schema of the options that it takes. */
export interface Defined<Schema extends StandardSchema, Create> {
  /**
   * Of the key `options` beside `file` in the job, of any library that follows Standard Schema; its faults are told with
   * their line in the job file. Default: any options go through as they are.
   */
  readonly options?: Schema;
  /** May be asynchronous. */
  readonly create: Create;
}

/**
 * A module's model, with options that are checked: for `model: { kind: module, file, options }`.
 *
 * @example
 * export default defineModel({
 *   options: z.strictObject({ hidden: z.int().min(1).default(32) }),
 *   create: (task, { hidden }) => mlp({ sizes: [...task.inputs.shape, hidden, task.classes!] }),
 * });
 */
export const defineModel = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<
    Schema,
    (
      task: Task,
      options: OptionsOf<Schema>,
    ) => Model<unknown, unknown, LabelledBatch, Sums> | Promise<Model<unknown, unknown, LabelledBatch, Sums>>
  >,
): ModelFactory<OptionsOf<Schema>> => define("model", defined);

/**
 * A module's samples, with options that are checked: for `data: { kind: module, file, options }`.
 *
 * @example
 * export default defineData({
 *   options: z.strictObject({ count: z.int().min(1) }),
 *   create: ({ count }) => ({ train: points(count), test: points(100), predicts: "classes", classes: 2 }),
 * });
 */
export const defineData = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<Schema, (options: OptionsOf<Schema>) => DataSet | Promise<DataSet>>,
): DataFactory<OptionsOf<Schema>> => define("data", defined);
