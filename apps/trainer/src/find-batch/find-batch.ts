import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, describeError } from "@skein/cli/node";
import { type Job, numBatchParts, type Override } from "@skein/job/node";
import { median } from "@skein/measuring";
import { bytesText, secondsText } from "@skein/report";
import { metricsFile, type Progress, readMetricLines } from "@skein/run-files/node";
import { byteLength } from "@skein/tensor-core";
import { openWebGpu } from "../backend/backend.ts";
import { buildData } from "../preparation/build-data.ts";
import { loadJob } from "../job-file/load-job.ts";
import type { Interruption } from "../processes/interruption.ts";
import { localRunner } from "../controller/local-runner.ts";
import type { Prepared } from "../preparation/prepared.ts";
import { prepareStep } from "../preparation/prepared-step.ts";
import { prepareOn, runJob } from "../run/run-job.ts";
import { batchesUpTo, type BatchTrial, chooseBatch, isOver } from "./choose-batch.ts";
import { type MemoryBound, memoryBound } from "./memory-bound.ts";

/** Job file with overrides. In each trial, the batch size is set as if it were written in the file. */
export interface JobSource {
  readonly file: string;
  readonly overrides: readonly Override[];
}

export interface FindBatchOptions {
  /** Memory limit of all ranks together, in bytes. Default: see `memoryBound`. */
  readonly maxBytes?: number | undefined;
  readonly interruption: Interruption;
  readonly progress: Progress;
}

export interface FoundBatch {
  /** The job as written in its file. */
  readonly job: Job;
  readonly bound: MemoryBound;
  /** Trials, in the order in which they were run. */
  readonly tries: readonly BatchTrial[];
  /** Chosen trial. Undefined: training failed with every batch size. */
  readonly chosen: BatchTrial | undefined;
}

/** Number of steps per trial. The first step includes compilation. */
const steps = 5;

/** Returns the override that sets the batch size of a job. */
export const batchOverride = (batch: number, origin: string): Override => ({ path: ["batch"], value: batch, origin });

/** Returns the planned memory of a rank in bytes: state, intermediate values, and the rank's samples. */
const bytesOfRank = (prepared: Prepared, step: ReturnType<typeof prepareStep>): number => {
  const samples = step.graph.inputs
    .slice(step.stateInputs)
    .flatMap((id) => step.graph.nodes[id]!.specs)
    .reduce((sum, spec) => sum + byteLength(spec), 0);
  return prepared.stateBytes + step.plan.workspaceBytes + samples;
};

/** Returns the properties of the WebGPU device for which steps are planned. Undefined if steps run on the CPU. */
const deviceFacts = async (backend: Job["backend"]): Promise<Parameters<typeof prepareStep>[1]> => {
  if (backend !== "webgpu") return undefined;
  const opened = await openWebGpu();
  try {
    return opened.facts;
  } finally {
    opened.close();
  }
};

/**
 * Runs some steps in a temporary folder. @returns the median step time in seconds, divided by the number of samples.
 */
const timeSteps = async (job: Job, { interruption, progress }: FindBatchOptions): Promise<number> => {
  const output = mkdtempSync(join(tmpdir(), "skein-find-batch-"));
  try {
    const run = join(output, "run");
    await runJob({
      job,
      runner: localRunner(job),
      interruption,
      output: run,
      start: "anew",
      maxRestarts: 0,
      profile: () => undefined, // no checkpoints and evaluations
      detailEvery: steps + 1,
      progress: { ...progress, update: () => {}, note: () => {}, close: () => {} },
    });
    const lines = readMetricLines(join(run, metricsFile)).filter(({ type }) => type === "step");
    return 1 / median(lines.slice(1).map((line) => line["samplesPerSecond"] as number));
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
};

const outOfMemory = "out of memory when a step was run";

/** Runs steps with a batch size whose planned memory is within the limit. */
const tryBatch = async (job: Job, planned: BatchTrial, options: FindBatchOptions): Promise<BatchTrial> => {
  try {
    return { ...planned, secondsPerSample: await timeSteps(job, options) };
  } catch (error) {
    if (describeError(error).code !== "out-of-memory") throw error;
    return { ...planned, refused: outOfMemory };
  }
};

/** Formats a trial as a line for the user. */
const trialLine = ({ batch, plannedBytes, secondsPerSample, refused }: BatchTrial): string =>
  [
    `batch ${batch}`,
    ...(Number.isNaN(plannedBytes) ? [] : [`${bytesText(plannedBytes)} planned`]),
    ...(secondsPerSample === undefined ? [] : [`${secondsText(secondsPerSample)} a sample`]),
    ...(refused === undefined ? [] : [refused]),
  ].join(", ");

/**
 * Searches for the batch size above which the time per sample no longer decreases, or the memory limit is exceeded.
 * Each batch size is twice the previous batch size. For each batch size, this function plans the step and, if the
 * planned memory is within the limit, runs some steps with the job's ranks on this machine. The search stops after two
 * batch sizes that save no time. Only this process chooses, so that all ranks have the same batch size.
 *
 * @throws ConfigError, and errors of a run before its first step; the code is "interrupted" if the user stops the
 * search.
 */
export const findBatch = async (source: JobSource, options: FindBatchOptions): Promise<FoundBatch> => {
  const load = (batch: number): Promise<Job> =>
    loadJob(source.file, [
      ...source.overrides,
      batchOverride(batch, `batch ${batch}, as skein-train find-batch tries it`),
      { path: ["steps"], value: steps, origin: "skein-train find-batch" },
      { path: ["epochs"], value: undefined, origin: "skein-train find-batch" },
    ]);
  const job = await loadJob(source.file, source.overrides);
  const data = await buildData(job.data);
  let { backend } = job;
  if (backend === "auto") backend = (await prepareOn({ job, given: { data } })).prepared.job.backend;
  const bound = memoryBound({ ...job, backend }, options.maxBytes, process.availableMemory());
  const device = await deviceFacts(backend);
  const tries: BatchTrial[] = [];
  for (const batch of batchesUpTo(numBatchParts(job) * (job.accumulate ?? 1), data.train.count)) {
    if (isOver(tries)) break;
    let one: BatchTrial;
    try {
      const tried = { ...(await load(batch)), backend };
      const planned = (await prepareOn({ job: tried, given: { data } })).prepared;
      const plannedBytes = job.ranks * bytesOfRank(planned, prepareStep(planned, device, { alone: true }));
      if (plannedBytes > bound.bytes) {
        tries.push({ batch, plannedBytes, refused: `more than ${bytesText(bound.bytes)}, ${bound.reason}` });
        options.progress.note(trialLine(tries.at(-1)!));
        break;
      }
      one = await tryBatch(tried, { batch, plannedBytes }, options);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      one = { batch, plannedBytes: Number.NaN, refused: error.message }; // invalid for this job, such as too small
    }
    tries.push(one);
    options.progress.note(trialLine(one));
    if (one.refused === outOfMemory) break;
  }
  return { job, bound, tries, chosen: chooseBatch(tries) };
};
