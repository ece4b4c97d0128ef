import type { Aggregator, Codec } from "@skein/compressors";
import type { Schedule } from "@skein/tensor-core";
import type {
  Callbacks,
  CallbacksFactory,
  CompressionContext,
  CompressionFactory,
  DataFactory,
  Judged,
  MetricsFactory,
  ModelFactory,
  OptimizerContext,
  OptimizerFactory,
  OwnMetrics,
  OwnOptimizer,
  RunControl,
  ScheduleContext,
  ScheduleFactory,
} from "./factories.ts";
import type { ModuleKey } from "./module-keys.ts";
import type { SchemaOutput, StandardSchema } from "./standard-schema.ts";
import type { DataSet, OwnModel, Task } from "../task/task.ts";

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
   * Of the key `options` beside `file` in the job, of any library that follows Standard Schema; its faults are told
   * with their line in the job file. Default: any options go through as they are.
   */
  readonly options?: Schema;
  /** May be asynchronous. */
  readonly create: Create;
}

/**
 * A module's model, with options that are checked: for `model: { kind: module, file, options }`. Its batches are the
 * tree that the samples are, so it may have several inputs and any loss.
 *
 * @example
 * export default defineModel({
 *   options: z.strictObject({ hidden: z.int().min(1).default(32) }),
 *   create: (task, { hidden }) => mlp({ sizes: [...task.inputs.shape, hidden, task.classes!] }),
 * });
 */
export const defineModel = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<Schema, (task: Task, options: OptionsOf<Schema>) => OwnModel | Promise<OwnModel>>,
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

/**
 * A module's optimizer, with options that are checked: for `optimizer: { kind: module, file, options }`. It gets mean
 * gradients, and what it gives is added to the parameters; `clipNorm`, `accumulate` and `average` of the job go around
 * it. Ranks can share its state out (`zero: 1`), and the parameters (`mesh`), where it says `elementwise: true`: see
 * `OwnOptimizer`. That is tried on small parameters before a run.
 *
 * @example
 * export default defineOptimizer({
 *   options: z.strictObject({ decay: z.number().min(0).lt(1).default(0.9) }),
 *   create: ({ learningRate }, { decay }) => chain(accumulateMomentum({ decay }), scaleByLearningRate(learningRate)),
 * });
 */
export const defineOptimizer = <Schema extends StandardSchema = AnyOptions>({
  elementwise = false,
  create,
  ...defined
}: Defined<Schema, (context: OptimizerContext, options: OptionsOf<Schema>) => OwnOptimizer | Promise<OwnOptimizer>> & {
  /** See `OwnOptimizer`. Default: false. */
  readonly elementwise?: boolean;
}): OptimizerFactory<OptionsOf<Schema>> => {
  const declared = (made: OwnOptimizer): OwnOptimizer =>
    elementwise && typeof made?.init === "function" && typeof made.update === "function"
      ? { elementwise, init: (params) => made.init(params), update: (...given) => made.update(...given) }
      : made;
  return define("optimizer", {
    ...defined,
    create: (context: OptimizerContext, options: OptionsOf<Schema>) => {
      const made = create(context, options);
      return made instanceof Promise ? made.then(declared) : declared(made);
    },
  });
};

/**
 * A module's schedule of the learning rate after the warm-up, with options that are checked: for
 * `learningRate: { peak, schedule: { kind: module, file, options } }`.
 *
 * @example export default defineSchedule({ create: ({ peak, steps }) => cosineDecay({ initial: peak, steps }) });
 */
export const defineSchedule = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<Schema, (context: ScheduleContext, options: OptionsOf<Schema>) => Schedule | Promise<Schedule>>,
): ScheduleFactory<OptionsOf<Schema>> => define("learningRate.schedule", defined);

/**
 * A module's way to exchange gradients, with options that are checked: for
 * `compression: { kind: module, file, options }`.
 *
 * @example
 * export default defineCompression({
 *   options: z.strictObject({ density: z.number().gt(0).max(1) }),
 *   create: (_, { density }) => topKCompressor({ density }),
 * });
 */
export const defineCompression = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<
    Schema,
    (context: CompressionContext, options: OptionsOf<Schema>) => Aggregator | Codec | Promise<Aggregator | Codec>
  >,
): CompressionFactory<OptionsOf<Schema>> => define("compression", defined);

/**
 * A module's figures to judge a run by, with options that are checked: for `metrics: { kind: module, file, options }`.
 *
 * @example
 * export default defineMetrics({
 *   create: () => ({
 *     rows: ({ logits, batch }) => ({ high: greater(max(logits, { dims: [1] }), 3) }),
 *     metrics: { sure: { sum: "high", per: "count" } },
 *   }),
 * });
 */
export const defineMetrics = <Schema extends StandardSchema = AnyOptions, Of = Judged>(
  defined: Defined<Schema, (task: Task, options: OptionsOf<Schema>) => OwnMetrics<Of> | Promise<OwnMetrics<Of>>>,
): MetricsFactory<OptionsOf<Schema>> => define("metrics", defined);

/**
 * A module's callbacks, with options that are checked: for `callbacks: { kind: module, file, options }`.
 *
 * @example
 * export default defineCallbacks({
 *   options: z.strictObject({ below: z.number() }),
 *   create: (run, { below }) => ({
 *     onEvaluation: ({ loss }) => {
 *       if (loss < below) run.stop();
 *     },
 *   }),
 * });
 */
export const defineCallbacks = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<Schema, (run: RunControl, options: OptionsOf<Schema>) => Callbacks | Promise<Callbacks>>,
): CallbacksFactory<OptionsOf<Schema>> => define("callbacks", defined);
