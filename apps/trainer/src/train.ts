import { fileURLToPath } from "node:url";
import type { Model, Sums } from "@skein/models";
import type { MapTree, NdArray, SkeinError, Tensor } from "@skein/tensor-core";
import { buildData, seenBy } from "./building/build.ts";
import { readCheckpoint } from "./checkpoint/checkpoint.ts";
import { checkpointSecret } from "./checkpoint/checkpoint-manifest.ts";
import { sha256 } from "./checkpoint/checkpoint-part.ts";
import { anchored, checkJob } from "./job/config.ts";
import { CheckpointError, ConfigError, describeError } from "./errors.ts";
import { EventStream } from "./run/event-stream.ts";
import { nodeFiles } from "./checkpoint/files.ts";
import { Interruption } from "./controller/interruption.ts";
import { localRunner } from "./controller/local-runner.ts";
import type { Job } from "./job/job.ts";
import type { DataInput, JobInput, ModelInput } from "./job/job-input.ts";
import { checkedData } from "./modules/checked-data.ts";
import { checkedModel } from "./modules/checked-model.ts";
import { withModules } from "./modules/module-keys.ts";
import { dataDigest } from "./modules/data-digest.ts";
import { withOwnMetrics } from "./modules/own-metrics.ts";
import { type DataSet, taskOf } from "./modules/task.ts";
import { traceModel } from "./modules/traced-model.ts";
import { settleJob } from "./job/settle-job.ts";
import type { Given, Prepared } from "./building/prepare.ts";
import type { Standing } from "./run/progress.ts";
import type { RunEvent } from "./run/run-events.ts";
import { runJob } from "./run/run-job.ts";
import { savedParams } from "./checkpoint/saved-run.ts";
import type { Summary } from "./run/summary.ts";

/** A job with data and model by name, as in a job file, or as objects of the program. */
export type TrainJob<Params = unknown, State = unknown> = JobInput & {
  /** Samples, or the name of a data set. */
  readonly data: DataSet | DataInput;
  /** A model, or the name of one. */
  readonly model: Model<Params, State, unknown, Sums, unknown> | ModelInput;
};

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
  /** Called after each step, with the mean loss of all ranks. What it throws stops the run, saved, and is thrown. */
  readonly onStep?: (standing: Standing) => void;
  /** Called with what `skein-train run` would tell a person: evaluations, restarts, remarks on the job. */
  readonly onNote?: (line: string) => void;
  /** File for a Chrome trace of the first steps. */
  readonly trace?: string;
  /** How often to go on by itself after a rank was lost, without a newer checkpoint. Default: 3. */
  readonly maxRestarts?: number;
}

/** What became of a run. */
export interface TrainResult<Params = unknown> {
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
  /** The parameters of that checkpoint, read from its file and checked. @throws CheckpointError when there is none. */
  parameters(): MapTree<Params, Tensor, NdArray>;
}

const isModel = (model: object): model is Model => "init" in model;

const isData = (data: object): data is DataSet => "train" in data && !("kind" in data);

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

/** The job with the digests of what the program gave, and that as ranks take it. */
const settle = async (job: Job, data: object, model: object): Promise<{ readonly job: Job; readonly given: Given }> => {
  const own = [...(isData(data) ? ["data"] : []), ...(isModel(model) ? ["model"] : [])];
  if (own.length === 0) return { job: await settleJob(job, inProgram), given: {} };
  if (job.transport !== "threads")
    throw new ConfigError([
      `train(): transport: ${job.transport} runs ranks as processes, which cannot have objects of this program, but ${own.join(" and ")} ${own.length === 1 ? "is one" : "are such"}; use transport: threads, or put ${own.length === 1 ? "it" : "them"} into a module and name it: { kind: "module", file }`,
    ]);
  const settled = await settleJob(job, inProgram);
  const samples = isData(data) ? checkedData(data, "train(): data") : await buildData(settled.data);
  const traced = isModel(model)
    ? traceModel(
        await withOwnMetrics(
          seenBy(checkedModel(model, samples.predicts, "train(): model", process.cwd()), settled.data, taskOf(samples)),
          settled,
          taskOf(samples),
        ),
        samples,
        job,
      )
    : undefined;
  return {
    job: {
      ...settled,
      ...(isData(data) && { data: { ...settled.data, ...ofProgram, digest: dataDigest(samples) } }),
      ...(traced && { model: { ...ofProgram, digest: sha256(JSON.stringify(traced)) } }),
    },
    given: { data: samples, model: traced },
  };
};

const parametersOf = (folder: string | undefined, prepared: Prepared): unknown => {
  if (folder === undefined)
    throw new CheckpointError("the run has saved nothing yet, so there are no parameters; let it make a step");
  return savedParams(prepared, readCheckpoint(nodeFiles, folder, checkpointSecret(process.env)));
};

/** What happens in a run, and what people would be told. */
export type TrainEvent = RunEvent | { readonly type: "note"; readonly line: string };

/**
 * A run under way. Awaited it gives its result; gone over it gives what happens, as it happens. Who leaves the loop
 * stops the run after the step at hand, saved.
 */
export interface TrainRun<Params = unknown> extends Promise<TrainResult<Params>>, AsyncIterable<TrainEvent> {
  [Symbol.asyncIterator](): AsyncGenerator<TrainEvent, void, undefined>;
}

/** Keep what a function of the program's throws, and stop the run: it saves first. */
const stopsOnFault = <Argument>(
  fn: ((argument: Argument) => void) | undefined,
  fail: (fault: unknown) => void,
): ((argument: Argument) => void) => {
  let failed = false;
  return (argument) => {
    if (failed) return;
    try {
      fn?.(argument);
    } catch (fault) {
      failed = true;
      fail(fault);
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
): TrainRun<Params> => {
  const events = new EventStream<TrainEvent>();
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
  { data, model, ...rest }: TrainJob<Params, State>,
  { output: folder, resume = false, signal, onStep, onNote, trace, maxRestarts }: TrainOptions,
  { interruption, emit }: { readonly interruption: Interruption; readonly emit: (event: TrainEvent) => void },
): Promise<TrainResult<Params>> => {
  for (const [name, part] of Object.entries({ data, model }))
    if (typeof part !== "object" || part === null)
      throw new ConfigError([`train(): ${name} is ${String(part)}, but must be an object or { kind: … }; give one`]);
  for (const key of functionsIn(rest))
    throw new ConfigError([
      `train(): ${key} is an object of this program, whose functions cannot go to the threads of ranks; put it into a module and name it: { kind: "module", file: new URL("my-${key}.ts", import.meta.url) }`,
    ]);
  if (resume && folder === undefined)
    throw new ConfigError(["train(): resume needs the folder to look for checkpoints in; give output too"]);
  signal?.throwIfAborted();
  const checked = checkJob(
    withPaths({
      name: "training",
      ...rest,
      data: isData(data) ? ofProgram : data,
      model: isModel(model) ? ofProgram : model,
    }),
    { file: "train()" },
  );
  const { job, given } = await settle(
    anchored(checked, () => "."),
    data,
    model,
  );
  const stop = (): void => interruption.request();
  const faults: unknown[] = [];
  const fail = (fault: unknown): void => {
    faults.push(fault);
    stop();
  };
  const told = stopsOnFault(onNote, fail);
  signal?.addEventListener("abort", stop);
  try {
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
      parameters: () => parametersOf(checkpoint, prepared) as MapTree<Params, Tensor, NdArray>,
    };
  } catch (error) {
    throw faults.length > 0 && describeError(error).code === "interrupted" ? faults[0] : error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
};
