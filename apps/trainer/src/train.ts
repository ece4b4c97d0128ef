import { fileURLToPath } from "node:url";
import type { Aggregator, Codec } from "@skein/compressors";
import type { Model, Sums } from "@skein/models";
import type { MapTree, NdArray, Schedule, SkeinError, Tensor } from "@skein/tensor-core";
import { buildData, limited } from "./preparation/build-data.ts";
import { seenBy } from "./preparation/build-model.ts";
import { readCheckpoint } from "./checkpoint/checkpoint.ts";
import { checkpointSecret } from "./checkpoint/checkpoint-manifest.ts";
import { sha256 } from "./files/sha256.ts";
import { anchored, checkJob } from "./job-file/config.ts";
import { CheckpointError, ConfigError, describeError } from "./errors.ts";
import { EventStream } from "./run-files/event-stream.ts";
import { mostWaiting } from "./run-files/waiting-events.ts";
import { nodeFiles } from "./files/files.ts";
import { Interruption } from "./processes/interruption.ts";
import { localRunner } from "./controller/local-runner.ts";
import type { Job } from "./job/job.ts";
import type { DataInput, JobInput, ModelInput } from "./job/job-input.ts";
import { checkedData } from "./modules/checked-data.ts";
import { checkedModel } from "./modules/checked-model.ts";
import { givenThing, isThing } from "./modules/given-thing.ts";
import { withModules } from "./modules/module-keys.ts";
import {
  partDigest,
  partKeys,
  type PartRecordings,
  partsOfThings,
  type ProgramThings,
} from "./modules/program-parts.ts";
import { dataDigest } from "./modules/data-digest.ts";
import { withOwnMetrics } from "./modules/own-metrics.ts";
import { type DataSet, taskOf } from "./task/task.ts";
import { type TracedModel, traceModel } from "./modules/traced-model.ts";
import { settleJob } from "./job-file/settle-job.ts";
import { type Given, prepare, type Prepared } from "./preparation/prepare.ts";
import { isExchangePlanned } from "./plans/exchange-plan.ts";
import { meshOf } from "./job/mesh.ts";
import type {
  Callbacks,
  CallbacksFactory,
  CompressionFactory,
  DataFactory,
  MetricsFactory,
  ModelFactory,
  OptimizerFactory,
  OwnMetrics,
  OwnOptimizer,
  ScheduleFactory,
} from "./modules/factories.ts";
import type { Standing } from "./run-files/progress.ts";
import type { RunEvent } from "./run-files/run-events.ts";
import { runJob } from "./run/run-job.ts";
import { inLogicalOrder, type LearntWeights } from "./checkpoint/logical-experts.ts";
import { savedParams, savedTree } from "./output-folder/saved-run.ts";
import type { Summary } from "./run-files/summary.ts";

/** What has a name in a job file, or is a module there, and may be an object or a factory of the program here. */
interface Things<Params, State> {
  /** Samples, or the name of a data set. */
  readonly data: DataSet | DataFactory<never> | DataInput;
  /** A model, or the name of one. */
  readonly model: Model<Params, State, unknown, Sums, unknown> | ModelFactory<never> | ModelInput;
  readonly optimizer: OwnOptimizer | OptimizerFactory<never> | JobInput["optimizer"];
  readonly compression?: Aggregator | Codec | CompressionFactory<never> | JobInput["compression"];
  readonly metrics?: OwnMetrics | MetricsFactory<never> | JobInput["metrics"];
  readonly callbacks?: Callbacks | CallbacksFactory<never> | JobInput["callbacks"];
  /** Its schedule: a number, a function of the step as those of `@skein/tensor-core` are, or of `defineSchedule`. */
  readonly learningRate: Omit<JobInput["learningRate"], "schedule"> & {
    readonly schedule?: Schedule | ScheduleFactory<never> | JobInput["learningRate"]["schedule"];
  };
}

/**
 * A job with the keys of a job file. What stands there by name, or by the module that it is in, may here be an object
 * of the program, or a factory that is called once with what the module's would be and the defaults of its options.
 */
export type TrainJob<Params = unknown, State = unknown> = Omit<JobInput, keyof Things<Params, State>> &
  Things<Params, State>;

export interface TrainOptions {
  /** Where results go. Default: `runs/<name>/<1, 2, …>` below the working folder. */
  readonly output?: string;
  /**
   * Go on from the newest checkpoint in `output`, where there is one. Default: false, and a folder that holds a run is
   * refused.
   */
  readonly resume?: boolean;
  /** Stops the run after the step at hand, and saves; the result then has no summary. */
  readonly signal?: AbortSignal;
  /**
   * Called after each step, with the mean loss of all ranks. What it throws stops the run, saved, and is thrown. Not
   * awaited.
   */
  readonly onStep?: (standing: Standing) => void;
  /** Called with what `skein-train run` would tell a person: evaluations, restarts, remarks on the job. */
  readonly onNote?: (line: string) => void;
  /** File for a Chrome trace of the first steps. */
  readonly trace?: string;
  /** How often to go on by itself after a rank was lost, without a newer checkpoint. Default: 3. */
  readonly maxRestarts?: number;
}

/** What became of a run. */
export interface TrainResult<Params = unknown, State = unknown> {
  /** The folder with metrics, checkpoints and the job. */
  readonly output: string;
  readonly step: number;
  readonly totalSteps: number;
  /** Absent where the run was stopped before its end. */
  readonly summary: Summary | undefined;
  /** The newest checkpoint. */
  readonly checkpoint: string | undefined;
  /** Why there is no trace, although one was asked for. */
  readonly traceFault: SkeinError | undefined;
  /**
   * The parameters of that checkpoint, read from its file and checked; experts in the order of their numbers.
   *
   * @throws CheckpointError when there is none.
   */
  parameters(): MapTree<Params, Tensor, NdArray>;
  /**
   * What the model has moved itself, of the same checkpoint: running statistics, biases of gates. Apply the model to
   * these parameters with it.
   *
   * @throws CheckpointError when there is none.
   */
  state(): MapTree<State, Tensor, NdArray>;
}

/** Keys of a job whose values hold functions where a name is to stand. */
const functionsIn = (job: object): string[] =>
  Object.entries(job).flatMap(([key, part]: [string, unknown]) =>
    typeof part === "function" ||
    (typeof part === "object" && part !== null && Object.values(part).some((each) => typeof each === "function"))
      ? [key]
      : [],
  );

/** Stands for the digest of an object until the rest of the job is checked. */
const unknownDigest = "0".repeat(64);

const ofProgram = { kind: "program", digest: unknownDigest } as const;

/** The same job with URLs of modules as paths. */
const withPaths = <Like extends object>(job: Like): Like =>
  withModules(job, (module) => {
    const { file }: { readonly file: unknown } = module;
    return file instanceof URL ? { ...module, file: fileURLToPath(file) } : module;
  });

/** Where the keys of a program's job stand. */
const inProgram = (): string => "train()";

/** What a program gave in place of names, by the keys of its job. */
type GivenThings = ProgramThings & Readonly<Partial<Record<"data" | "model" | "callbacks", unknown>>>;

/** A job as a job file would say it, with `kind: program` where the program gave something itself. */
const apart = ({
  data,
  model,
  optimizer,
  compression,
  metrics,
  callbacks,
  learningRate,
  ...rest
}: TrainJob<never, never>): { readonly job: object; readonly things: GivenThings } => {
  const parts = { data, model, optimizer, compression, metrics, callbacks };
  for (const key of ["data", "model"] as const)
    if (typeof parts[key] !== "object" && typeof parts[key] !== "function")
      throw new ConfigError([
        `train(): ${key} is ${String(parts[key])}, but must be an object, a factory or { kind: … }; give one`,
      ]);
  const schedule: unknown = learningRate?.schedule;
  const isSchedule = typeof schedule === "number" || isThing(schedule);
  const things = {
    ...Object.fromEntries(Object.entries(parts).filter(([, part]) => isThing(part))),
    ...(isSchedule && { "learningRate.schedule": schedule }),
  };
  for (const key of functionsIn(rest))
    throw new ConfigError([
      `train(): ${key} holds a function, but nothing of a program's can stand there; write what a job file says`,
    ]);
  const named = Object.entries(parts).map(([key, part]) => [key, isThing(part) ? ofProgram : part]);
  const job = {
    name: "training",
    ...rest,
    ...Object.fromEntries(named.filter(([, part]) => part !== undefined)),
    learningRate: isSchedule ? { ...learningRate, schedule: ofProgram } : learningRate,
  };
  return { job: withPaths(job), things };
};

/** Where ranks are threads that begin with the program's buckets, its things can go to them as graphs. */
const requireThreads = (job: Job, things: GivenThings): void => {
  const own = Object.keys(things).filter((key) => key !== "callbacks"); // these stay in this process
  const isOne = own.length === 1;
  if (own.length > 0 && job.transport !== "threads")
    throw new ConfigError([
      `train(): transport: ${job.transport} runs ranks as processes, which cannot have objects of this program, but ${own.join(" and ")} ${isOne ? "is one" : "are such"}; use transport: threads, or put ${isOne ? "it" : "them"} into a module and name it: { kind: "module", file }`,
    ]);
  if ("compression" in things && isExchangePlanned(job))
    throw new ConfigError([
      `train(): buckets: ${job.buckets.kind} decides by measurements what is sent together, but compression is an object of this program, which is traced before them; use other buckets, or put it into a module and name it: { kind: "module", file }`,
    ]);
};

/** Of what steers the training: what is shown of samples does not. */
const modelDigest = ({ outputs: _, logits: __, ...steering }: TracedModel): string => sha256(JSON.stringify(steering));

/** The job with the digests of what the program gave, and that as ranks take it. */
const settle = async (job: Job, things: GivenThings): Promise<{ readonly job: Job; readonly given: Given }> => {
  const settled = await settleJob(job, inProgram);
  if (Object.keys(things).length === 0) return { job: settled, given: {} };
  requireThreads(settled, things);
  const { callbacks } = things;
  const ownData = "data" in things ? checkedData(await givenThing("data", things.data), "train(): data") : undefined;
  const data = ownData === undefined ? await buildData(settled.data) : limited(ownData, settled.data);
  const task = taskOf(data);
  const parts = partsOfThings(things, meshOf(settled));
  const made = "model" in things ? await givenThing("model", things.model, task) : undefined;
  const model =
    made === undefined
      ? undefined
      : traceModel(
          await withOwnMetrics(
            seenBy(checkedModel(made, data.predicts, "train(): model", process.cwd()), settled.data, task),
            settled,
            task,
            parts.parts,
          ),
          data,
          job,
        );
  const given: Given = { data, model, parts, callbacks };
  const digests = (key: "data" | "model", digest: string): Job[typeof key] =>
    ({ ...settled[key], ...ofProgram, digest }) as Job[typeof key];
  const withDigests = {
    ...settled,
    ...(ownData && { data: digests("data", dataDigest(data)) }),
    ...(model && { model: digests("model", modelDigest(model)) }),
  } as Job;
  if (!partKeys.some((key) => key in things)) return { job: withDigests, given };
  await prepare(withDigests, given); // which traces them: what was recorded is what a run is made of
  return { job: withPartDigests(withDigests, parts.recordings), given };
};

const withPartDigests = (job: Job, recordings: PartRecordings): Job => {
  const told = <Part extends { readonly kind: string }>(key: (typeof partKeys)[number], part: Part): Part =>
    part.kind === "program" ? { ...part, digest: partDigest(key, recordings) } : part;
  const { schedule } = job.learningRate;
  return {
    ...job,
    optimizer: told("optimizer", job.optimizer),
    compression: told("compression", job.compression),
    ...(job.metrics && { metrics: told("metrics", job.metrics) }),
    ...(schedule && {
      learningRate: { ...job.learningRate, schedule: told("learningRate.schedule", schedule) },
    }),
  };
};

const weightsOf = (folder: string | undefined, prepared: Prepared): LearntWeights => {
  if (folder === undefined)
    throw new CheckpointError("the run has saved nothing yet, so there are no parameters; let it make a step");
  const checkpoint = readCheckpoint(nodeFiles, folder, checkpointSecret(process.env));
  return inLogicalOrder(prepared.model, {
    params: savedParams(prepared, checkpoint),
    state: savedTree("model", prepared.modelState, { whole: prepared.whole, checkpoint }),
  });
};

/** What happens in a run, and what people would be told. */
export type TrainEvent = RunEvent | { readonly type: "note"; readonly line: string };

/**
 * A run under way. Awaited it gives its result; gone over it gives what happens, as it happens. Who leaves the loop
 * stops the run after the step at hand, saved.
 *
 * The run waits for no loop. For one that is slower the newest 1000 steps and 1000 notes are kept, and older ones left
 * out; then its last event is a note that tells how many. All other events arrive, and all in order.
 */
export interface TrainRun<Params = unknown, State = unknown>
  extends Promise<TrainResult<Params, State>>,
    AsyncIterable<TrainEvent> {
  [Symbol.asyncIterator](): AsyncGenerator<TrainEvent, void, undefined>;
}

/** Keep what a function of the program's throws, or its promise is rejected with, and stop the run: it saves first. */
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
      if (given instanceof Promise) given.catch(failOnce); // nobody else would, and Node ends for it
    } catch (fault) {
      failOnce(fault);
    }
  };
};

/**
 * Train: a job of this program, with the keys of a job file. Data and model are named as there, or are objects: samples
 * as `DataSet`, a model as `@skein/models` makes them. What is computed is what `skein-train run` computes, in threads
 * of this process or in processes of their own.
 *
 * A model that is an object is traced once, here; ranks get its graphs, so it must not depend on values, only on
 * shapes.
 *
 * @throws ConfigError, DataError, ModuleError, ShapeError for what the program got wrong, before anything is written;
 * what brought the run down afterwards, or what `onStep` or `onNote` threw, after the run has saved.
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
    line: `the loop over this run has missed ${lost}: it is slower than they come, and ${mostWaiting} of each wait for it at most; have it do less, or only at evaluations, of which it gets each`,
  }));
  const interruption = new Interruption();
  const result = trainWith(job, options, { interruption, emit: (event) => events.emit(event) });
  const leave = async (): Promise<void> => {
    interruption.request();
    await result.catch((error: unknown) => {
      if (describeError(error).code !== "interrupted") throw error; // it was to stop, before its first step too
    });
  };
  return Object.assign(result, { [Symbol.asyncIterator]: () => events.read(result, leave) });
};

const trainWith = async <Params, State>(
  trained: TrainJob<Params, State>,
  { output: folder, resume = false, signal, onStep, onNote, trace, maxRestarts }: TrainOptions,
  { interruption, emit }: { readonly interruption: Interruption; readonly emit: (event: TrainEvent) => void },
): Promise<TrainResult<Params, State>> => {
  const { job: said, things } = apart(trained as TrainJob<never, never>);
  if (resume && folder === undefined)
    throw new ConfigError(["train(): resume needs the folder to look for checkpoints in; give output too"]);
  signal?.throwIfAborted();
  const checked = checkJob(said, { file: "train()" });
  const stop = (): void => interruption.request();
  signal?.addEventListener("abort", stop); // before anything is waited for: it tells of itself but once
  const faults: unknown[] = [];
  let isOver = false;
  const fail = (fault: unknown): void => {
    if (isOver) throw fault; // too late to be thrown by the run: Node tells of it
    faults.push(fault);
    stop();
  };
  const told = stopsOnFault(onNote, fail);
  try {
    const { job, given } = await settle(
      anchored(checked, () => "."),
      things,
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
          told(line);
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
