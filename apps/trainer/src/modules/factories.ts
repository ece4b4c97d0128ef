import type { Aggregator, Codec } from "@skein/compressors";
import type { LabelledBatch, Ratio } from "@skein/models";
import type { GradientTransformation, Schedule, Tensor } from "@skein/tensor-core";
import type { CheckpointEvent, EndEvent, EvaluationEvent, StartEvent, StepEvent } from "../run-files/run-events.ts";
import type { DataSet, OwnModel, Task } from "../task/task.ts";

/**
 * What the module of `model: { kind: module, file }` exports: makes the model of a task. Called in each rank's thread,
 * with `options` of the job, so it must give the same model each time.
 *
 * A batch is the tree that the samples of the data are, see `arrayRecords` of `@skein/data`, each leaf `[B, …]`, when
 * samples are held out with `mask` bool [B] beside it. `apply` takes its field `inputs`, or all of it but `mask` where
 * it has none.
 *
 * @example export default ((task, { hidden = 64 }) => mlp({ sizes: [...task.inputs.shape, hidden, task.classes!] }))
 * satisfies ModelFactory<{ hidden?: number }>;
 */
export type ModelFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  task: Task,
  options: Options,
) => OwnModel | Promise<OwnModel>;

/**
 * What the module of `data: { kind: module, file }` exports: loads the samples. Called once in each process, which must
 * all get the same ones.
 */
export type DataFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  options: Options,
) => DataSet | Promise<DataSet>;

/** An optimizer of a user's, and what it declares. */
export type OwnOptimizer = GradientTransformation<unknown> & {
  /**
   * Whether the update of an entry depends on that entry alone, of gradients, parameters and its own state, and on how
   * many dimensions its parameter has. Then ranks may share its state out (`zero: 1`), and the parameters (`mesh`); it
   * keeps its state in trees like the parameters, or in scalars that are the same for all. Default: false.
   */
  readonly elementwise?: boolean | undefined;
};

/** What an optimizer of a user's may follow. */
export interface OptimizerContext {
  /** The job's, warm-up and all: hand it to the last part, such as `scaleByLearningRate(learningRate)`. */
  readonly learningRate: Schedule;
  /** Of the whole run. */
  readonly totalSteps: number;
}

/**
 * What the module of `optimizer: { kind: module, file }` exports: makes a transformation of gradients, means over all
 * ranks, into updates that are added to the parameters. Called in each rank's thread.
 *
 * @example export default (({ learningRate }) => chain(scaleByAdam({}), scaleByLearningRate(learningRate))) satisfies
 * OptimizerFactory;
 */
export type OptimizerFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  context: OptimizerContext,
  options: Options,
) => OwnOptimizer | Promise<OwnOptimizer>;

/** What a schedule of a user's goes by. */
export interface ScheduleContext {
  /** `learningRate.peak` and `learningRate.final` of the job. */
  readonly peak: number;
  readonly final: number;
  /** Of the run after its warm-up, which the job adds. */
  readonly steps: number;
}

/**
 * What the module of `learningRate.schedule` exports: gives the rate of each step after the warm-up, a number or a
 * traced function of the step (i32 scalar, from 0) to an f32 scalar.
 */
export type ScheduleFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  context: ScheduleContext,
  options: Options,
) => Schedule | Promise<Schedule>;

/** What the exchange of a user's may go by. */
export interface CompressionContext {
  readonly ranks: number;
}

/**
 * What the module of `compression: { kind: module, file }` exports: makes a codec, whose payloads are added or gathered
 * as it declares, or an aggregator that does it all.
 */
export type CompressionFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  context: CompressionContext,
  options: Options,
) => Aggregator | Codec | Promise<Aggregator | Codec>;

/** What a metric of a user's is computed from: a batch of held-out samples. */
export interface Judged<Batch = LabelledBatch, Outputs = Tensor> {
  /** What the model's `apply` gives for its inputs, f32 `[B, …, classes]` of classifiers; of others any tree. */
  readonly logits: Outputs;
  readonly batch: Batch;
}

/** Figures by which a run is judged beside those of its model. */
export interface OwnMetrics<Of = Judged> {
  /**
   * A number for each row of a batch, by name: `[B]` or `[B, …]` of any dtype. Rows that only fill the batch up are
   * left out, the others are added up over all batches and ranks. Traced.
   */
  rows(judged: Of): Readonly<Record<string, Tensor>>;
  /**
   * The figures: ratios of these sums, and of those that the model has anyway: `count`, `lossSum`, of classes
   * `correct`, and what a model of yours adds.
   */
  readonly metrics: Readonly<Record<string, Ratio>>;
}

/** What the module of `metrics: { kind: module, file }` exports. Called in each rank's thread. */
export type MetricsFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  task: Task,
  options: Options,
) => OwnMetrics<never> | Promise<OwnMetrics<never>>;

/** The run that callbacks are called for. */
export interface RunControl {
  /** Let the run end after the step at hand, and save. */
  stop(): void;
}

/**
 * Functions that are called when something happens in a run, in the one process that keeps its record. A promise is
 * awaited before the next call, not before the next step: where `onStep` is slower than steps are, the newest 1000 wait
 * for it, older ones are left out, and the end tells how many. All other events arrive. What throws stops the run after
 * the step at hand, saved.
 */
export interface Callbacks {
  onStart?(event: StartEvent): void | Promise<void>;
  onStep?(event: StepEvent): void | Promise<void>;
  onEvaluation?(event: EvaluationEvent): void | Promise<void>;
  onCheckpoint?(event: CheckpointEvent): void | Promise<void>;
  /** The run waits for it, and for the calls before it. */
  onEnd?(event: EndEvent): void | Promise<void>;
  /**
   * How long, in seconds, the end of a run waits for a call that does not come back; each has so long. Then the run
   * ends with an error that names it. Infinity: for as long as it takes. Default: 600.
   */
  readonly patienceSeconds?: number;
}

/** What the module of `callbacks: { kind: module, file }` exports. Called once for a run. */
export type CallbacksFactory<Options extends object = Readonly<Record<string, unknown>>> = (
  run: RunControl,
  options: Options,
) => Callbacks | Promise<Callbacks>;
