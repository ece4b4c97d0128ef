import type { Aggregator, Codec } from "@skein/compressors";
import type { LabelledBatch, Ratio } from "@skein/models";
import type { CheckpointEvent, EndEvent, EvaluationEvent, StartEvent, StepEvent } from "@skein/run-files/node";
import type { DataSet, OwnModel, OwnOptimizer, Task } from "@skein/step/node";
import type { Schedule, Tensor } from "@skein/tensor-core";

/**
 * Export of the module of `model: { kind: module, file }`: creates the model of a task. Called in each rank's thread
 * with `options` of the job, so it must return the same model each time.
 *
 * A batch has the tree structure of the samples, see `arrayRecords` of `@skein/data`. Each leaf has the shape
 * `[B, …]`. Held-out batches also contain `mask`, bool [B]. `apply` receives the field `inputs`; if there is no such
 * field, it receives the whole batch except `mask`.
 *
 * @example export default ((task, { hidden = 64 }) => mlp({ sizes: [...task.inputs.shape, hidden, task.classes!] }))
 * satisfies ModelFactory<{ hidden?: number }>;
 */
export type ModelFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  task: Task,
  options: Options,
) => OwnModel | Promise<OwnModel>;

/**
 * Export of the module of `data: { kind: module, file }`: loads the samples. Called once in each process; all processes
 * must load the same samples.
 */
export type DataFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  options: Options,
) => DataSet | Promise<DataSet>;

/** Inputs of an optimizer factory. */
export interface OptimizerContext {
  /**
   * Learning rate of the job, including warm-up. Pass it to the last transformation of the chain, such as
   * `scaleByLearningRate(learningRate)`.
   */
  readonly learningRate: Schedule;
  /** Number of steps of the complete run. */
  readonly totalSteps: number;
}

/**
 * Export of the module of `optimizer: { kind: module, file }`: creates a transformation of gradients (means over all
 * ranks) to updates, which are added to the parameters. Called in each rank's thread.
 *
 * @example export default (({ learningRate }) => chain(scaleByAdam({}), scaleByLearningRate(learningRate))) satisfies
 * OptimizerFactory;
 */
export type OptimizerFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  context: OptimizerContext,
  options: Options,
) => OwnOptimizer | Promise<OwnOptimizer>;

/** Inputs of a schedule factory. */
export interface ScheduleContext {
  /** Peak learning rate, `learningRate.peak` of the job. */
  readonly peak: number;
  /** Final learning rate, `learningRate.final` of the job. */
  readonly final: number;
  /** Number of steps of the run after the warm-up. The job adds the warm-up to the schedule. */
  readonly steps: number;
}

/**
 * Export of the module of `learningRate.schedule`: returns the learning rate of each step after the warm-up, as a
 * number or as a traced function of the step (i32 scalar, from 0) to an f32 scalar.
 */
export type ScheduleFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  context: ScheduleContext,
  options: Options,
) => Schedule | Promise<Schedule>;

/** Inputs of a compression factory. */
export interface CompressionContext {
  readonly ranks: number;
}

/**
 * Export of the module of `compression: { kind: module, file }`: creates a codec or an aggregator. The payloads of a
 * codec are added or gathered, as the codec declares. An aggregator performs the complete exchange.
 */
export type CompressionFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  context: CompressionContext,
  options: Options,
) => Aggregator | Codec | Promise<Aggregator | Codec>;

/** Inputs of a user-defined metric: a batch of held-out samples, and the model's outputs for the batch. */
export interface Judged<Batch = LabelledBatch, Outputs = Tensor> {
  /** Result of the model's `apply` for the inputs: f32 `[B, …, classes]` for classifiers, any tree for other models. */
  readonly logits: Outputs;
  readonly batch: Batch;
}

/** Metrics for evaluation, in addition to the metrics of the model. */
export interface OwnMetrics<Of = Judged> {
  /**
   * Returns values per row of a batch, by name, with shape `[B]` or `[B, …]` and any dtype. The values of each name are
   * summed over the unmasked rows of all batches and ranks. This function is traced.
   */
  rows(judged: Of): Readonly<Record<string, Tensor>>;
  /**
   * Metrics by name. Each metric is a ratio of two sums. The sums are computed by `rows` or by the model (`count`,
   * `lossSum`, `correct` for classifiers, and sums that your model adds).
   */
  readonly metrics: Readonly<Record<string, Ratio>>;
}

/** Export of the module of `metrics: { kind: module, file }`. Called in each rank's thread. */
export type MetricsFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  task: Task,
  options: Options,
) => OwnMetrics<never> | Promise<OwnMetrics<never>>;

/** Control of the run for callbacks. */
export interface RunControl {
  /** Ends the run after the current step, and saves. */
  stop(): void;
}

/**
 * Functions that are called on events of a run, in the process that records the run. If a function returns a promise,
 * the next call waits for the promise, but the next step does not. If `onStep` is slower than steps, the newest 1000
 * events are kept, older events are dropped, and the number of dropped events is reported at the end. All other events
 * are delivered. If a function throws, the run stops after the current step and saves.
 */
export interface Callbacks {
  onStart?(event: StartEvent): void | Promise<void>;
  onStep?(event: StepEvent): void | Promise<void>;
  onEvaluation?(event: EvaluationEvent): void | Promise<void>;
  onCheckpoint?(event: CheckpointEvent): void | Promise<void>;
  /** Called at the end of the run. The run waits for this call and for all earlier calls. */
  onEnd?(event: EndEvent): void | Promise<void>;
  /**
   * Maximum time, in seconds, that the end of a run waits for a call that does not return. After this time, the run
   * ends with an error that names the call. Infinity: no limit. Default: 600.
   */
  readonly patienceSeconds?: number;
}

/** Export of the module of `callbacks: { kind: module, file }`. Called once per run. */
export type CallbacksFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  run: RunControl,
  options: Options,
) => Callbacks | Promise<Callbacks>;
