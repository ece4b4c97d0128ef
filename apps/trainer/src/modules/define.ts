import type { Aggregator, Codec } from "@skein/compressors";
import type { ModuleKey } from "@skein/job/node";
import type { DataSet, OwnModel, OwnOptimizer, Task } from "@skein/step/node";
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
  RunControl,
  ScheduleContext,
  ScheduleFactory,
} from "./factories.ts";
import type { SchemaOutput, StandardSchema } from "./standard-schema.ts";

/**
 * Metadata that a `define…` helper attaches to a factory: the job key that the factory is for, and the schema of its
 * options.
 */
interface Definition {
  readonly key: ModuleKey;
  readonly options: StandardSchema | undefined;
}

/**
 * Key of the factory property that stores the definition. The key is a shared symbol, so that the definition is found
 * even if the user module imports another copy of this file.
 */
const definition: unique symbol = Symbol.for("skein-train.definition") as never;

/** Returns the definition of a factory; undefined if no `define…` helper created the factory. */
export const definitionOf = (factory: object): Definition | undefined =>
  (factory as { readonly [definition]?: Definition })[definition];

const define = <Create extends (...args: never[]) => unknown>(
  key: ModuleKey,
  { options, create }: { readonly options?: StandardSchema | undefined; readonly create: Create },
): Create =>
  Object.assign(((...args: never[]) => create(...args)) as Create, {
    [definition]: { key, options } satisfies Definition,
  });

/** Schema type of a factory without a schema: options can have any names and values. */
type AnyOptions = StandardSchema<unknown, Readonly<Record<string, unknown>>>;

/** Options that a factory receives: the output of its schema. */
type OptionsOf<Schema extends StandardSchema> = SchemaOutput<Schema> & object;

/** Argument of a `define…` helper: a factory, and the schema of its options. */
export interface Defined<Schema extends StandardSchema, Create> {
  /**
   * Schema for the key `options` next to `file` in the job, from any library that implements Standard Schema. Invalid
   * options are reported with their line in the job file. Default: options are passed unchanged.
   */
  readonly options?: Schema;
  /** Factory function, which may be asynchronous. */
  readonly create: Create;
}

/**
 * Defines a model and validates its options, for `model: { kind: module, file, options }`. Batches of the model have
 * the tree structure of the samples, so the model may have several inputs and any loss.
 *
 * @example export default defineModel({
 *   options: z.strictObject({ hidden: z.int().min(1).default(32) }),
 *   create: (task, { hidden }) => mlp({ sizes: [...task.inputs.shape, hidden, task.classes!] }),
 * });
 */
export const defineModel = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<Schema, (task: Task, options: OptionsOf<Schema>) => OwnModel | Promise<OwnModel>>,
): ModelFactory<OptionsOf<Schema>> => define("model", defined);

/**
 * Defines samples and validates their options, for `data: { kind: module, file, options }`.
 *
 * @example export default defineData({
 *   options: z.strictObject({ count: z.int().min(1) }),
 *   create: ({ count }) => ({ train: points(count), test: points(100), predicts: "classes", classes: 2 }),
 * });
 */
export const defineData = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<Schema, (options: OptionsOf<Schema>) => DataSet | Promise<DataSet>>,
): DataFactory<OptionsOf<Schema>> => define("data", defined);

/**
 * Defines an optimizer and validates its options, for `optimizer: { kind: module, file, options }`. The optimizer
 * receives mean gradients, and its updates are added to the parameters. The job's `clipNorm`, `accumulate` and
 * `average` are applied around the optimizer. If the optimizer declares `elementwise: true`, see `OwnOptimizer`, ranks
 * can shard its state (`zero: 1`) and the parameters (`mesh`). The declaration is tested on small parameters before a
 * run.
 *
 * @example export default defineOptimizer({
 *   options: z.strictObject({ decay: z.number().min(0).lt(1).default(0.9) }),
 *   create: ({ learningRate }, { decay }) => chain(accumulateMomentum({ decay }), scaleByLearningRate(learningRate)),
 * });
 */
export const defineOptimizer = <Schema extends StandardSchema = AnyOptions>({
  elementwise = false,
  create,
  ...defined
}: Defined<Schema, (context: OptimizerContext, options: OptionsOf<Schema>) => OwnOptimizer | Promise<OwnOptimizer>> & {
  /** Whether the optimizer works element by element, see `OwnOptimizer`. Default: false. */
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
 * Defines a learning-rate schedule for the steps after the warm-up, and validates its options, for
 * `learningRate: { peak, schedule: { kind: module, file, options } }`.
 *
 * @example export default defineSchedule({ create: ({ peak, steps }) => cosineDecay({ initial: peak, steps }) });
 */
export const defineSchedule = <Schema extends StandardSchema = AnyOptions>(
  defined: Defined<Schema, (context: ScheduleContext, options: OptionsOf<Schema>) => Schedule | Promise<Schedule>>,
): ScheduleFactory<OptionsOf<Schema>> => define("learningRate.schedule", defined);

/**
 * Defines a gradient exchange and validates its options, for `compression: { kind: module, file, options }`.
 *
 * @example export default defineCompression({
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
 * Defines evaluation metrics and validates their options, for `metrics: { kind: module, file, options }`.
 *
 * @example export default defineMetrics({
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
 * Defines callbacks and validates their options, for `callbacks: { kind: module, file, options }`.
 *
 * @example export default defineCallbacks({
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
