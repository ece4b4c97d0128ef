import type { Aggregator, Codec } from "@skein/compressors";
import type { LabelledBatch, Ratio } from "@skein/models";
import type { GradientTransformation, Schedule, Tensor } from "@skein/tensor-core";
import type { CheckpointEvent, EndEvent, EvaluationEvent, StartEvent, StepEvent } from "../run-files/run-events.ts";
import type { DataSet, OwnModel, Task } from "../task/task.ts";

/**
 * Export of the module of `model: { kind: module, file }`: makes the model of a task. Called in each rank's thread,
 * with `options` of the job, so it must return the same model each time.
 *
 * A batch has the tree structure of the samples, see `arrayRecords` of `@skein/data`, with each leaf `[B, …]`. Held-out
 * batches also have `mask`, bool [B]. `apply` receives the field `inputs`, or the whole batch except `mask` if there is
 * no such field.
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
 * must get the same samples.
 */
export type DataFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  options: Options,
) => DataSet | Promise<DataSet>;

/** A user-defined optimizer and its declared properties. */
export type OwnOptimizer = GradientTransformation<unknown> & {
  /**
   * Whether the update of an entry depends only on that entry of gradients, parameters and optimizer state, and on the
   * number of dimensions of its parameter. If so, ranks may share the optimizer's state (`zero: 1`), and the parameters
   * (`mesh`). The state must consist of trees with the structure of the parameters, or of scalars that are equal for
   * all entries. Default: false.
   */
  readonly elementwise?: boolean | undefined;
};

/** Inputs of an optimizer factory. */
export interface OptimizerContext {
  /**
   * The job's learning rate, including warm-up. Pass it to the last part, such as `scaleByLearningRate(learningRate)`.
   */
  readonly learningRate: Schedule;
  /** Number of steps of the whole run. */
  readonly totalSteps: number;
}

/**
 * Export of the module of `optimizer: { kind: module, file }`: makes a transformation of gradients, means over all
 * ranks, to updates that are added to the parameters. Called in each rank's thread.
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
  /** `learningRate.peak` and `learningRate.final` of the job. */
  readonly peak: number;
  readonly final: number;
  /** Number of steps of the run after its warm-up, which the job adds. */
  readonly steps: number;
}

/**
 * Export of the module of `learningRate.schedule`: returns the rate of each step after the warm-up, as a number or as a
 * traced function of the step (i32 scalar, from 0) to an f32 scalar.
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
 * Export of the module of `compression: { kind: module, file }`: makes a codec, whose payloads are added or gathered as
 * the codec declares, or an aggregator that does the whole exchange.
 */
export type CompressionFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  context: CompressionContext,
  options: Options,
) => Aggregator | Codec | Promise<Aggregator | Codec>;

/** Inputs of a user-defined metric: a batch of held-out samples. */
export interface Judged<Batch = LabelledBatch, Outputs = Tensor> {
  /** Result of the model's `apply` for the inputs, f32 `[B, …, classes]` for classifiers, any tree for other models. */
  readonly logits: Outputs;
  readonly batch: Batch;
}

/** Figures by which a run is evaluated, in addition to the figures of its model. */
export interface OwnMetrics<Of = Judged> {
  /**
   * Numbers for each row of a batch, by name: `[B]` or `[B, …]` of any dtype. Masked rows are excluded, the other rows
   * are summed over all batches and ranks. Traced.
   */
  rows(judged: Of): Readonly<Record<string, Tensor>>;
  /**
   * Figures: ratios of these sums, and of the sums of the model: `count`, `lossSum`, for classes `correct`, and the
   * sums that your model adds.
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
  /** End the run after the current step, and save. */
  stop(): void;
}

/**
 * Functions that are called on events of a run, in the process that keeps its record. A promise is awaited before the
 * next call, not before the next step: if `onStep` is slower than steps, the newest 1000 events wait, older events are
 * dropped, and the number of dropped events is reported at the end. All other events are delivered. An exception stops
 * the run after the current step, and the run is saved.
 */
export interface Callbacks {
  onStart?(event: StartEvent): void | Promise<void>;
  onStep?(event: StepEvent): void | Promise<void>;
  onEvaluation?(event: EvaluationEvent): void | Promise<void>;
  onCheckpoint?(event: CheckpointEvent): void | Promise<void>;
  /** The run waits for this call, and for the calls before it. */
  onEnd?(event: EndEvent): void | Promise<void>;
  /**
   * Maximum seconds that the end of a run waits for each call that does not return. After that time the run ends with
   * an error that names the call. Infinity: no limit. Default: 600.
   */
  readonly patienceSeconds?: number;
}

/** Export of the module of `callbacks: { kind: module, file }`. Called once per run. */
export type CallbacksFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  run: RunControl,
  options: Options,
) => Callbacks | Promise<Callbacks>;
