import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "@skein/cli/node";
import type { LinkFile } from "@skein/collectives";
import { bucketPerTensor } from "@skein/compressors";
import type { LinearCollectiveModel } from "@skein/cost-model";
import type { PreparedGraph } from "@skein/cost-model/pricing";
import type { DeviceFacts, ListedShader } from "@skein/gpu-kernels";
import type { Job } from "@skein/job/node";
import type { Progress } from "@skein/run-files/node";
import { type BucketedPlan, buildParts, type ExchangePlan, isExchangePlanned } from "@skein/step/node";
import { byteLength, type RankSpans, type Span } from "@skein/tensor-core";
import { type AxisGroups, axisGroupsOf } from "./members/axis-groups.ts";
import type { BackendName } from "./backend/backend.ts";
import type { BackendRates } from "./backend/backend-rates.ts";
import { surveyHardware } from "./preparation/choose-backend.ts";
import { loadJob } from "./job-file/load-job.ts";
import { Interruption } from "./processes/interruption.ts";
import { localRunner } from "./controller/local-runner.ts";
import { measureJobRates } from "./backend/job-rates.ts";
import { measureLinks } from "./links/measure-links.ts";
import { backwardOf, isAloneOn, profileOfStarts } from "./planning/measure-profile.ts";
import { decidePlan, type ExchangeTimes } from "./planning/plan-together.ts";
import { partsInputOf, type Prepared } from "./preparation/prepared.ts";
import { prepare } from "./preparation/prepare.ts";
import { type GradientTensor, gradientTensors, traceExchange } from "./preparation/prepared-exchange.ts";
import { type PreparedStep, prepareStep, traceStep } from "./preparation/prepared-step.ts";
import { runJob } from "./run/run-job.ts";
import { overridesOf, type RunOptions } from "./command-line/run-options.ts";

export { type DeviceFacts, minimalDevice, type ListedShader, shadersOf } from "@skein/gpu-kernels";
export type { AxisGroups } from "./members/axis-groups.ts";
export { type BackendRates, deviceOfRates } from "./backend/backend-rates.ts";
export { type TraceFacts, writeChromeTrace } from "@skein/run-files/node";
export { describeError } from "@skein/cli/node";
export { asTypedInProgram } from "./own-files.ts";
export { exitCodeOfSignal, onInterrupt, type StopCause } from "@skein/cli/node";
export { surviveLostOutput } from "@skein/cli/node";
export { type BucketedPlan, type ExchangePlan, exchangePlanSchema } from "@skein/step/node";
export { makeFolders } from "@skein/cli/node";
export { writeStderr, writeStdout } from "@skein/cli/node";
export type { GradientTensor } from "./preparation/prepared-exchange.ts";
export type { PreparedStep } from "./preparation/prepared-step.ts";

/** Command-line options that override settings of the job file. */
export type JobOptions = Partial<Pick<RunOptions, "ranks" | "transport" | "set" | "certificates" | "insecure">>;

/** Properties of a job for profilers. */
export interface JobFacts {
  readonly name: string;
  readonly backend: BackendName;
  readonly ranks: number;
  readonly transport: Job["transport"];
  /** Clock that times kernels. `none`: the adapter has no timestamp queries. */
  readonly kernelClock: "host" | "device" | "none";
  /** Number of samples per step, over all ranks. */
  readonly samplesPerStep: number;
  readonly trainSamples: number;
  /** Bytes of parameters, optimizer state and compressor residuals on a rank. */
  readonly stateBytes: number;
  readonly compression: Job["compression"]["kind"];
  /**
   * How bucket sizes and densities are chosen: given in the job, planned from measurements before the first step, or
   * tuned during the run.
   */
  readonly exchange: "given" | "planned" | "tuned";
}

/** Predicted times from which a gradient exchange is planned without measurements. */
export interface PricedTimes extends Omit<ExchangeTimes, "dense" | "experts"> {
  /**
   * Returns the time in seconds at which the gradient in bucket `bucket` is ready, in a step with one bucket per
   * tensor. Undefined: the gradient is not sent.
   */
  readonly readySeconds: (bucket: number) => number | undefined;
  /**
   * Returns the spans of a step with one bucket per tensor, and a time model of the all-to-alls that send tokens to
   * experts. Needed if buckets are planned around expert layers.
   */
  readonly experts?: (() => { readonly spans: readonly Span[]; readonly allToAll: LinearCollectiveModel }) | undefined;
}

/** Result of a profiled run. */
export interface ProfiledRun {
  /** Spans of all steps. If the run was stopped, fewer steps than requested. */
  readonly ranks: readonly RankSpans[];
  /** Exchange plan made before the first step. Undefined: the exchange is not planned. */
  readonly plan: ExchangePlan | undefined;
}

/** A job whose steps can be profiled. The data has been loaded, and all settings have been checked. */
export interface ProfiledJob {
  readonly facts: JobFacts;
  /**
   * Returns the training step as the job's backend runs it.
   *
   * @param plan exchange plan. Default: one bucket per tensor, as in the first steps of a job with a planned exchange.
   */
  step(plan?: ExchangePlan): PreparedStep;
  /** Returns the gradient tensors of a step with one bucket per tensor, indexed by bucket number. */
  gradients(): readonly GradientTensor[];
  /**
   * Returns the exchange of some gradients in a single bucket, without the other computations of the step, see
   * `traceExchange`. Takes milliseconds, whereas tracing a step takes seconds.
   */
  exchange(tensors: readonly GradientTensor[], plan?: ExchangePlan): PreparedGraph;
  /**
   * Returns the exchange plan that the job would make before its first step if it measured the given times. Only for a
   * job with a planned exchange.
   */
  planBy(times: PricedTimes): BucketedPlan;
  /**
   * Returns the job with changed settings. Samples are loaded again only if data settings change.
   * @param set settings in the form `key=value`, as for the option `--set`.
   */
  with(set: readonly string[]): Promise<ProfiledJob>;
  /** Returns the groups of ranks by mesh axis. */
  groups(): { readonly [axis: string]: AxisGroups };
  /** Measures the links between the job's ranks. @throws ConfigError if the ranks are threads, which have no links. */
  links(): Promise<LinkFile>;
  /** Measures the rates of the backend for a short time. */
  rates(): Promise<BackendRates>;
  /**
   * Runs some steps without checkpoints or evaluations, in a temporary output folder.
   *
   * @param options with `detailEvery`, every `detailEvery`-th step is recorded in detail, and each remaining step is
   * recorded as a single span.
   * @throws the error that ended the run.
   */
  run(
    steps: number,
    options?: {
      readonly onNote?: (line: string) => void;
      readonly signal?: AbortSignal;
      readonly detailEvery?: number;
    },
  ): Promise<ProfiledRun>;
}

/**
 * Returns the backend on which a job is profiled. `auto` selects a hardware GPU if there is one, so that users can
 * compare it with the CPU.
 */
const profiledBackend = async (
  requested: Job["backend"],
): Promise<{ readonly name: BackendName; readonly device: DeviceFacts | undefined }> => {
  if (requested === "cpu") return { name: "cpu", device: undefined };
  const { webgpu } = await surveyHardware({ always: requested === "webgpu" });
  if ("facts" in webgpu && (requested === "webgpu" || !webgpu.facts.software))
    return { name: "webgpu", device: webgpu.facts };
  if (requested === "webgpu")
    throw new ConfigError([
      `backend: webgpu cannot be used here: ${"install" in webgpu ? webgpu.install : "missing" in webgpu ? webgpu.missing : ""}`,
    ]);
  return { name: "cpu", device: undefined };
};

/** Returns the WebGPU device of this machine. @throws ConfigError if there is no device. */
export const deviceHere = async (): Promise<DeviceFacts> => (await profiledBackend("webgpu")).device!;

/** Returns the shaders of a job's training step for a WebGPU device, which this machine need not have. */
export const jobShaders = async (
  file: string,
  { set = [], ...options }: JobOptions,
  facts: DeviceFacts,
): Promise<readonly ListedShader[]> => {
  const job = await loadJob(file, overridesOf({ ...options, set, color: false }));
  return traceStep(await prepare({ ...job, compression: withoutWarmup(job.compression) })).shaders(facts);
};

/** Plans an exchange from predicted times, in the same way as a run plans from measurements. */
const planBy = (prepared: Prepared, { readySeconds, experts, ...times }: PricedTimes): BucketedPlan => {
  const { job, trained } = prepared;
  const unplanned = buildParts(partsInputOf(prepared));
  if (job.buckets.kind === "moe-idle" && experts !== undefined) {
    const { spans, allToAll } = experts();
    const { profile: dense, layers } = backwardOf([spans], {
      buckets: bucketPerTensor(trained),
      params: trained,
      isAlone: isAloneOn(unplanned),
    });
    return decidePlan(job, unplanned, { ...times, dense, experts: { layers, allToAll } }).plan;
  }
  const dense = profileOfStarts(
    gradientTensors(prepared).map(({ path, shape }, bucket) => ({
      path,
      bytes: byteLength({ dtype: "f32", shape }),
      readySeconds: readySeconds(bucket),
    })),
  );
  return decidePlan(job, unplanned, { ...times, dense }).plan;
};

/**
 * Removes the warm-up steps with higher density from a compression, so that a profile shows the steps after the
 * warm-up.
 */
const withoutWarmup = (compression: Job["compression"]): Job["compression"] => ({
  ...compression,
  ...("warmupSteps" in compression && { warmupSteps: 0 }),
  ...("densityWarmup" in compression && { densityWarmup: undefined }),
});

/** Returns a progress display that reports only notes. */
const notes = (onNote: ((line: string) => void) | undefined): Progress => ({
  update: () => undefined,
  note: (line) => onNote?.(line),
  close: () => undefined,
});

/**
 * Opens a job for profiling.
 *
 * @throws ConfigError, DataError, ModuleError if the job is invalid.
 */
export const openJob = (file: string, options: JobOptions = {}): Promise<ProfiledJob> =>
  openWith(file, options, undefined);

/**
 * Opens a job. Reuses loaded samples if possible.
 * @param before the job with other settings, whose loaded samples may be reused.
 */
const openWith = async (
  file: string,
  { set = [], ...options }: JobOptions,
  before: Pick<Prepared, "job" | "data"> | undefined,
): Promise<ProfiledJob> => {
  const loaded = await loadJob(file, overridesOf({ ...options, set, color: false }));
  const { name: backend, device } = await profiledBackend(loaded.backend);
  const job: Job = { ...loaded, backend, compression: withoutWarmup(loaded.compression) };
  const namesSame = before !== undefined && isDeepStrictEqual(before.job.data, job.data);
  const prepared = await prepare(job, namesSame ? { data: before.data } : {});
  const step = (plan?: ExchangePlan): PreparedStep => prepareStep(prepared, device, { plan });
  return {
    facts: {
      name: job.name,
      backend,
      ranks: job.ranks,
      transport: job.transport,
      kernelClock: device === undefined ? "host" : device.timestamps ? "device" : "none",
      samplesPerStep: job.batch,
      trainSamples: prepared.data.train.count,
      stateBytes: prepared.stateBytes,
      compression: job.compression.kind,
      exchange: isExchangePlanned(job) ? "planned" : job.buckets.kind === "tuned" && job.ranks > 1 ? "tuned" : "given",
    },
    step,
    gradients: () => gradientTensors(prepared),
    exchange: (tensors, plan) => traceExchange(prepared, tensors, { device, plan }),
    planBy: (times) => planBy(prepared, times),
    with: (more) => openWith(file, { ...options, set: [...set, ...more] }, prepared),
    groups: () => axisGroupsOf(job),
    links: () => measureLinks(job, () => undefined),
    rates: async () => (await measureJobRates(job, backend)).rates,
    run: async (steps, { onNote, signal, detailEvery } = {}) => {
      signal?.throwIfAborted();
      const interruption = new Interruption();
      const stop = (): void => interruption.request();
      signal?.addEventListener("abort", stop);
      const output = mkdtempSync(join(tmpdir(), "skein-profile-"));
      let run: ProfiledRun = { ranks: [], plan: undefined };
      try {
        await runJob({
          job: { ...job, steps, epochs: undefined, checkpoint: { ...job.checkpoint, everySteps: undefined } },
          runner: localRunner(job),
          interruption,
          progress: notes(onNote),
          output: join(output, "run"),
          start: "anew",
          maxRestarts: 0,
          profile: (ranks, plan) => (run = { ranks, plan }),
          detailEvery,
        });
        return run;
      } finally {
        signal?.removeEventListener("abort", stop);
        rmSync(output, { recursive: true, force: true });
      }
    },
  };
};
