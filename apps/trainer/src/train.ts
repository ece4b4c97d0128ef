import { fileURLToPath } from "node:url";
import { checkpointSecret, readCheckpoint } from "@skein/checkpoints/node";
import { CheckpointError, ConfigError, describeError, nodeFiles, sha256 } from "@skein/cli/node";
import type { Aggregator, Codec } from "@skein/compressors";
import {
  checkJob,
  type DataInput,
  type Job,
  type JobInput,
  meshOf,
  type ModelInput,
  withAbsolutePaths,
  withModules,
} from "@skein/job/node";
import type { Model, Sums } from "@skein/models";
import { EventStream, maxWaiting, type RunEvent, type StepProgress, type Summary } from "@skein/run-files/node";
import {
  type DataSet,
  inLogicalOrder,
  isExchangePlanned,
  type OwnOptimizer,
  taskOf,
  type TrainedWeights,
} from "@skein/step/node";
import type { MapTree, NdArray, Schedule, SkeinError, Tensor } from "@skein/tensor-core";
import { buildData, limitData } from "./preparation/build-data.ts";
import { withNormalisation } from "./preparation/build-model.ts";
import { Interruption } from "./processes/interruption.ts";
import { localRunner } from "./controller/local-runner.ts";
import { checkedData } from "./modules/checked-data.ts";
import { checkedModel } from "./modules/checked-model.ts";
import { givenObject, isGivenObject } from "./modules/program-objects.ts";
import {
  partDigest,
  partKeys,
  type PartRecordings,
  partsOfObjects,
  type ProgramObjects,
} from "./modules/program-parts.ts";
import { dataDigest } from "./modules/data-digest.ts";
import { withOwnMetrics } from "./modules/own-metrics.ts";
import { type TracedModel, traceModel } from "./modules/traced-model.ts";
import { settleJob } from "./job-file/settle-job.ts";
import type { Given, Prepared } from "./preparation/prepared.ts";
import { prepare } from "./preparation/prepare.ts";
import type {
  Callbacks,
  CallbacksFactory,
  CompressionFactory,
  DataFactory,
  MetricsFactory,
  ModelFactory,
  OptimizerFactory,
  OwnMetrics,
  ScheduleFactory,
} from "./modules/factories.ts";
import { runJob } from "./run/run-job.ts";
import { savedParams, savedTree } from "./output-folder/saved-run.ts";

/**
 * Fields of a job for which a program may pass an object or a factory. In a job file, these fields contain a name or a
 * module.
 */
interface ProgramParts<Params, State> {
  /** Samples, a factory of samples, or a built-in data set. */
  readonly data: DataSet | DataFactory<never> | DataInput;
  /** A model, a factory of a model, or a built-in model. */
  readonly model: Model<Params, State, unknown, Sums, unknown> | ModelFactory<never> | ModelInput;
  readonly optimizer: OwnOptimizer | OptimizerFactory<never> | JobInput["optimizer"];
  readonly compression?: Aggregator | Codec | CompressionFactory<never> | JobInput["compression"];
  readonly metrics?: OwnMetrics | MetricsFactory<never> | JobInput["metrics"];
  readonly callbacks?: Callbacks | CallbacksFactory<never> | JobInput["callbacks"];
  /**
   * Learning rate. `schedule` is a number, a function of the step as in `@skein/tensor-core`, or a result of
   * `defineSchedule`.
   */
  readonly learningRate: Omit<JobInput["learningRate"], "schedule"> & {
    readonly schedule?: Schedule | ScheduleFactory<never> | JobInput["learningRate"]["schedule"];
  };
}

/**
 * A job with the keys of a job file. The value of some keys may also be an object of the program or a factory. A
 * factory is called once, with the arguments of a module's factory and with default options.
 */
export type TrainJob<Params = unknown, State = unknown> = Omit<JobInput, keyof ProgramParts<Params, State>> &
  ProgramParts<Params, State>;

export interface TrainOptions {
  /** Output folder. Default: `runs/<name>/<1, 2, …>` in the working directory. */
  readonly output?: string;
  /**
   * Whether to resume from the newest checkpoint in `output`, if there is one. Default: false; a folder with a run is
   * then rejected.
   */
  readonly resume?: boolean;
  /** Signal that stops the run after the current step and saves. The result of a stopped run has no summary. */
  readonly signal?: AbortSignal;
  /**
   * Called after each step, with the mean loss over all ranks. Not awaited. If `onStep` throws, the run saves and
   * stops, and then throws the error.
   */
  readonly onStep?: (standing: StepProgress) => void;
  /** Called with each line that `skein-train run` would print: evaluations, restarts, remarks on the job. */
  readonly onNote?: (line: string) => void;
  /** Path for a Chrome trace of the first steps. Default: no trace. */
  readonly trace?: string;
  /**
   * Maximum number of automatic restarts, after the loss of a rank, without a newer checkpoint in between. Default: 3.
   */
  readonly maxRestarts?: number;
}

/** Result of a run. */
export interface TrainResult<Params = unknown, State = unknown> {
  /** Output folder, which contains metrics, checkpoints and the job. */
  readonly output: string;
  readonly step: number;
  readonly totalSteps: number;
  /** Summary of the run. Undefined: the run was stopped before its end. */
  readonly summary: Summary | undefined;
  /** Path of the newest checkpoint. Undefined: no checkpoint was saved. */
  readonly checkpoint: string | undefined;
  /** Error that prevented writing the requested trace. Undefined: no error. */
  readonly traceFault: SkeinError | undefined;
  /**
   * Reads, verifies and returns the parameters in the newest checkpoint. Experts are in numerical order.
   *
   * @throws CheckpointError if there is no checkpoint.
   */
  parameters(): MapTree<Params, Tensor, NdArray>;
  /**
   * Reads and returns the model state in the newest checkpoint, such as running statistics and gate biases. Apply the
   * model to the result of `parameters()` with this state.
   *
   * @throws CheckpointError if there is no checkpoint.
   */
  state(): MapTree<State, Tensor, NdArray>;
}

/** Returns the job keys whose values are or contain functions. Only some keys may have such values. */
const functionsIn = (job: object): string[] =>
  Object.entries(job).flatMap(([key, part]: [string, unknown]) =>
    typeof part === "function" ||
    (typeof part === "object" && part !== null && Object.values(part).some((each) => typeof each === "function"))
      ? [key]
      : [],
  );

/** Temporary digest of a program's object, used until all other fields of the job have been checked. */
const unknownDigest = "0".repeat(64);

const programPart = { kind: "program", digest: unknownDigest } as const;

/** Converts URLs of modules in a job to paths. */
const withPaths = <Like extends object>(job: Like): Like =>
  withModules(job, (module) => {
    const { file }: { readonly file: unknown } = module;
    return file instanceof URL ? { ...module, file: fileURLToPath(file) } : module;
  });

/** Returns the location of job keys for error messages, which is the same for all keys of a program's job. */
const programLocation = (): string => "train()";

/** Objects that a program passed instead of names, by job key. */
type GivenObjects = ProgramObjects & Readonly<Partial<Record<"data" | "model" | "callbacks", unknown>>>;

/**
 * Splits the job of a program into a job as in a job file and the program's objects. In the job, `kind: program`
 * replaces each object.
 */
const separateObjects = ({
  data,
  model,
  optimizer,
  compression,
  metrics,
  callbacks,
  learningRate,
  ...rest
}: TrainJob<never, never>): { readonly job: object; readonly objects: GivenObjects } => {
  const parts = { data, model, optimizer, compression, metrics, callbacks };
  for (const key of ["data", "model"] as const)
    if (typeof parts[key] !== "object" && typeof parts[key] !== "function")
      throw new ConfigError([
        `train(): ${key} is ${String(parts[key])}, but must be an object, a factory or { kind: … }; give one`,
      ]);
  const schedule: unknown = learningRate?.schedule;
  const isSchedule = typeof schedule === "number" || isGivenObject(schedule);
  const objects = {
    ...Object.fromEntries(Object.entries(parts).filter(([, part]) => isGivenObject(part))),
    ...(isSchedule && { "learningRate.schedule": schedule }),
  };
  for (const key of functionsIn(rest))
    throw new ConfigError([
      `train(): ${key} contains a function, but it cannot be an object of the program; give it as in a job file`,
    ]);
  const named = Object.entries(parts).map(([key, part]) => [key, isGivenObject(part) ? programPart : part]);
  const job = {
    name: "training",
    ...rest,
    ...Object.fromEntries(named.filter(([, part]) => part !== undefined)),
    learningRate: isSchedule ? { ...learningRate, schedule: programPart } : learningRate,
  };
  return { job: withPaths(job), objects };
};

/**
 * Requires that the program's objects can be sent to ranks as graphs. Ranks must be threads, and a compression object
 * must not be combined with buckets that are planned from measurements.
 */
const requireThreads = (job: Job, objects: GivenObjects): void => {
  const own = Object.keys(objects).filter((key) => key !== "callbacks"); // callbacks run in this process
  const isOne = own.length === 1;
  if (own.length > 0 && job.transport !== "threads")
    throw new ConfigError([
      `train(): transport: ${job.transport} runs ranks as processes, which cannot have objects of this program, but ${own.join(" and ")} ${isOne ? "is such an object" : "are such objects"}; use transport: threads, or put ${isOne ? "it" : "them"} into a module and name it: { kind: "module", file }`,
    ]);
  if ("compression" in objects && isExchangePlanned(job))
    throw new ConfigError([
      `train(): buckets: ${job.buckets.kind} plans buckets from measurements, but compression is an object of this program, which is traced before the measurements; use other buckets, or put it into a module and name it: { kind: "module", file }`,
    ]);
};

/** Computes a digest of the graphs that affect training. Graphs that are used only to show samples are excluded. */
const modelDigest = ({ outputs: _, logits: __, ...steering }: TracedModel): string => sha256(JSON.stringify(steering));

/**
 * Adds digests to a job, including digests of the program's objects. Returns the job, and the objects converted to what
 * is sent to ranks.
 */
const settle = async (job: Job, objects: GivenObjects): Promise<{ readonly job: Job; readonly given: Given }> => {
  const settled = await settleJob(job, programLocation);
  if (Object.keys(objects).length === 0) return { job: settled, given: {} };
  requireThreads(settled, objects);
  const { callbacks } = objects;
  const ownData = "data" in objects ? checkedData(await givenObject("data", objects.data), "train(): data") : undefined;
  const data = ownData === undefined ? await buildData(settled.data) : limitData(ownData, settled.data);
  const task = taskOf(data);
  const parts = partsOfObjects(objects, meshOf(settled));
  const made = "model" in objects ? await givenObject("model", objects.model, task) : undefined;
  const model =
    made === undefined
      ? undefined
      : traceModel(
          await withOwnMetrics(
            withNormalisation(checkedModel(made, data.predicts, "train(): model", process.cwd()), settled.data, task),
            settled,
            task,
            parts.parts,
          ),
          data,
          job,
        );
  const given: Given = { data, model, parts, callbacks };
  const digests = (key: "data" | "model", digest: string): Job[typeof key] =>
    ({ ...settled[key], ...programPart, digest }) as Job[typeof key];
  const withDigests = {
    ...settled,
    ...(ownData && { data: digests("data", dataDigest(data)) }),
    ...(model && { model: digests("model", modelDigest(model)) }),
  } as Job;
  if (!partKeys.some((key) => key in objects)) return { job: withDigests, given };
  await prepare(withDigests, given); // traces the objects; digests are computed from the recorded graphs
  return { job: withPartDigests(withDigests, parts.recordings), given };
};

const withPartDigests = (job: Job, recordings: PartRecordings): Job => {
  const withDigest = <Part extends { readonly kind: string }>(key: (typeof partKeys)[number], part: Part): Part =>
    part.kind === "program" ? { ...part, digest: partDigest(key, recordings) } : part;
  const { schedule } = job.learningRate;
  return {
    ...job,
    optimizer: withDigest("optimizer", job.optimizer),
    compression: withDigest("compression", job.compression),
    ...(job.metrics && { metrics: withDigest("metrics", job.metrics) }),
    ...(schedule && {
      learningRate: { ...job.learningRate, schedule: withDigest("learningRate.schedule", schedule) },
    }),
  };
};

const weightsOf = (folder: string | undefined, prepared: Prepared): TrainedWeights => {
  if (folder === undefined)
    throw new CheckpointError("the run has saved nothing yet, so there are no parameters; let it make a step");
  const checkpoint = readCheckpoint(nodeFiles, folder, checkpointSecret(process.env));
  return inLogicalOrder(prepared.model, {
    params: savedParams(prepared, checkpoint),
    state: savedTree("model", prepared.modelState, { whole: prepared.whole, checkpoint }),
  });
};

/** An event of a run, or a note for the user. */
export type TrainEvent = RunEvent | { readonly type: "note"; readonly line: string };

/**
 * A run in progress: a promise of its result, and an async iterable of its events. Leaving the loop over events stops
 * the run after the current step and saves.
 *
 * The run does not wait for the loop. If the loop is slower than the run, the newest 1000 steps and 1000 notes are
 * kept, older steps and notes are dropped, and the last event is a note with the number of dropped events. Other events
 * are never dropped. All events are in order.
 */
export interface TrainRun<Params = unknown, State = unknown>
  extends Promise<TrainResult<Params, State>>,
    AsyncIterable<TrainEvent> {
  [Symbol.asyncIterator](): AsyncGenerator<TrainEvent, void, undefined>;
}

/**
 * Wraps a callback of the program. If the callback throws, or its promise is rejected, the error is passed to `fail`,
 * and the callback is not called again.
 */
const stopsOnFault = <Argument>(
  fn: ((argument: Argument) => unknown) | undefined,
  fail: (fault: unknown) => void,
): ((argument: Argument) => void) => {
  let failed = false;
  const failOnce = (fault: unknown): void => {
    if (failed) return;
    failed = true;
    fail(fault);
  };
  return (argument) => {
    if (failed) return;
    try {
      const given = fn?.(argument);
      if (given instanceof Promise) given.catch(failOnce); // else Node would exit because of an unhandled rejection
    } catch (fault) {
      failOnce(fault);
    }
  };
};

/**
 * Trains a job that the calling program defines with the same keys as a job file. Data and model are given by name as
 * in a job file, or as objects: samples as a `DataSet`, a model as created by `@skein/models`. The computation is the
 * same as in `skein-train run`, in threads of this process or in separate processes.
 *
 * A model object is traced once, in this process, and ranks receive its graphs. So the control flow of the model must
 * depend only on the shapes of tensors, not on their values.
 *
 * @throws ConfigError, DataError, ModuleError, ShapeError if the job is invalid, before anything is written; later, the
 * error that ended the run, or the error of `onStep` or `onNote`, after the run has saved.
 * @example
 * const run = train({
 *   batch: 64,
 *   epochs: 3,
 *   ranks: 2,
 *   data,
 *   model: mlp({ sizes: [4, 32, 3] }),
 *   optimizer: { kind: "adam" },
 *   learningRate: { peak: 0.01 },
 * });
 * for await (const event of run)
 *   if (event.type === "evaluation" && event.loss < 0.1) break; // stops the run, saved
 * const { checkpoint, parameters } = await run;
 */
export const train = <Params = unknown, State = unknown>(
  job: TrainJob<Params, State>,
  options: TrainOptions = {},
): TrainRun<Params, State> => {
  const events = new EventStream<TrainEvent>((lost) => ({
    type: "note",
    line: `the loop over this run has missed ${lost}: the loop is slower than the run, and at most ${maxWaiting} events of each kind are kept; do less work in the loop, or only at evaluations, which are all delivered`,
  }));
  const interruption = new Interruption();
  const result = trainWith(job, options, { interruption, emit: (event) => events.emit(event) });
  const leave = async (): Promise<void> => {
    interruption.request();
    await result.catch((error: unknown) => {
      if (describeError(error).code !== "interrupted") throw error; // a requested stop, also before the first step
    });
  };
  return Object.assign(result, { [Symbol.asyncIterator]: () => events.read(result, leave) });
};

const trainWith = async <Params, State>(
  trained: TrainJob<Params, State>,
  { output: folder, resume = false, signal, onStep, onNote, trace, maxRestarts }: TrainOptions,
  { interruption, emit }: { readonly interruption: Interruption; readonly emit: (event: TrainEvent) => void },
): Promise<TrainResult<Params, State>> => {
  const { job: jobInput, objects } = separateObjects(trained as TrainJob<never, never>);
  if (resume && folder === undefined)
    throw new ConfigError(["train(): resume needs the folder to look for checkpoints in; give output too"]);
  signal?.throwIfAborted();
  const checked = checkJob(jobInput, { file: "train()" });
  const stop = (): void => interruption.request();
  signal?.addEventListener("abort", stop); // before the first await, because the event fires only once
  const faults: unknown[] = [];
  let isOver = false;
  const fail = (fault: unknown): void => {
    if (isOver) throw fault; // the run has ended and cannot throw the error, so Node reports it
    faults.push(fault);
    stop();
  };
  const notify = stopsOnFault(onNote, fail);
  try {
    const { job, given } = await settle(
      withAbsolutePaths(checked, () => "."),
      objects,
    );
    const { output, step, summary, checkpoint, traceFault, prepared } = await runJob({
      job,
      given,
      runner: localRunner(job),
      interruption,
      progress: {
        update: stopsOnFault(onStep, fail),
        note: (line) => {
          emit({ type: "note", line });
          notify(line);
        },
        close: () => undefined,
      },
      happened: emit,
      output: folder,
      start: resume ? "from checkpoint if possible" : "anew",
      tracePath: trace,
      maxRestarts,
    });
    if (faults.length > 0) throw faults[0];
    return {
      output,
      step,
      totalSteps: prepared.totalSteps,
      summary,
      checkpoint,
      traceFault,
      parameters: () => weightsOf(checkpoint, prepared).params as MapTree<Params, Tensor, NdArray>,
      state: () => weightsOf(checkpoint, prepared).state as MapTree<State, Tensor, NdArray>,
    };
  } catch (error) {
    throw faults.length > 0 && describeError(error).code === "interrupted" ? faults[0] : error;
  } finally {
    isOver = true;
    signal?.removeEventListener("abort", stop);
  }
};
