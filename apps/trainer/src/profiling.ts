import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { LinkFile } from "@skein/collectives";
import type { DeviceFacts, ListedShader } from "@skein/gpu-kernels";
import { bucketPerTensor } from "@skein/compressors";
import type { LinearCollectiveModel, PreparedGraph } from "@skein/cost-model";
import { byteLength, type RankSpans, type Span } from "@skein/tensor-core";
import { type AxisGroups, axisGroupsOf } from "./members/axis-groups.ts";
import type { BackendName } from "./backend/backend.ts";
import type { BackendRates } from "./backend/backend-rates.ts";
import { surveyHardware } from "./preparation/choose-backend.ts";
import { loadJob } from "./job-file/config.ts";
import { ConfigError } from "./errors.ts";
import { Interruption } from "./processes/interruption.ts";
import { localRunner } from "./controller/local-runner.ts";
import type { Job } from "./job/job.ts";
import { measureJobRates } from "./backend/job-rates.ts";
import { measureLinks } from "./links/measure-links.ts";
import { type BucketedPlan, type ExchangePlan, isExchangePlanned } from "./plans/exchange-plan.ts";
import { backwardOf, isAloneOn, profileOfStarts } from "./planning/measure-profile.ts";
import { decidePlan, type ExchangeTimes } from "./planning/plan-together.ts";
import { partsInputOf, prepare, type Prepared } from "./preparation/prepare.ts";
import { type GradientTensor, gradientTensors, traceExchange } from "./preparation/prepared-exchange.ts";
import { type PreparedStep, prepareStep, traceStep } from "./preparation/prepared-step.ts";
import type { Progress } from "./run-files/progress.ts";
import { runJob } from "./run/run-job.ts";
import { overridesOf, type RunOptions } from "./command-line/run-options.ts";
import { buildParts } from "./step/train-state.ts";

export { type DeviceFacts, leastDevice, type ListedShader, shadersOf } from "@skein/gpu-kernels";
export type { AxisGroups } from "./members/axis-groups.ts";
export { type BackendRates, deviceOfRates } from "./backend/backend-rates.ts";
export { type TraceFacts, writeChromeTrace } from "./run-files/chrome-trace.ts";
export { describeError } from "./errors.ts";
export { asTypedIn } from "./console/own-command.ts";
export { exitCodeOfSignal, onInterrupt, type StopCause } from "./processes/interrupts.ts";
export { surviveLostOutput } from "./processes/lost-output.ts";
export { type BucketedPlan, type ExchangePlan, exchangePlanSchema } from "./plans/exchange-plan.ts";
export { makeFolders } from "./files/make-folders.ts";
export { writeStderr, writeStdout } from "./console/terminal.ts";
export type { GradientTensor } from "./preparation/prepared-exchange.ts";
export type { PreparedStep } from "./preparation/prepared-step.ts";

/** Values of the command line that go before those of the job file. */
export type JobOptions = Partial<Pick<RunOptions, "ranks" | "transport" | "set" | "certificates" | "insecure">>;

/** What profilers know of a job. */
export interface JobFacts {
  readonly name: string;
  readonly backend: BackendName;
  readonly ranks: number;
  readonly transport: Job["transport"];
  /**
   * What kernels are timed by: the clock of the host, that of the device, or none where its adapter has no timestamp
   * queries.
   */
  readonly kernelClock: "host" | "device" | "none";
  /** Samples of a step, of all ranks together. */
  readonly samplesPerStep: number;
  readonly trainSamples: number;
  /** Bytes of parameters, optimizer state and residuals on a rank. */
  readonly stateBytes: number;
  /** Its kind. */
  readonly compression: Job["compression"]["kind"];
  /**
   * How buckets and densities come about: said by the job, planned by measurements before the first step, or tried out
   * while it runs.
   */
  readonly exchange: "given" | "planned" | "tuned";
}

/** What a planned exchange follows from, where nothing is measured. */
export interface PricedTimes extends Omit<ExchangeTimes, "dense" | "experts"> {
  /**
   * When each gradient is ready, by the number of its bucket in a step that exchanges each tensor by itself; undefined
   * where no message is sent.
   */
  readonly readySeconds: (bucket: number) => number | undefined;
  /** Such a step by its spans, and an exchange of tokens: where buckets go by layers of experts. */
  readonly experts?: (() => { readonly spans: readonly Span[]; readonly allToAll: LinearCollectiveModel }) | undefined;
}

/** What a run of some steps told. */
export interface ProfiledRun {
  /** The spans of all steps; fewer steps than asked for where the run was stopped. */
  readonly ranks: readonly RankSpans[];
  /** What was decided before the first step, where the exchange is planned. */
  readonly plan: ExchangePlan | undefined;
}

/** A job whose steps can be looked at. Data are loaded, all rules are checked. */
export interface ProfiledJob {
  readonly facts: JobFacts;
  /**
   * The training step, as the backend of this job would run it.
   *
   * @param plan of a planned exchange. Default: as such a job begins, each tensor by itself.
   */
  step(plan?: ExchangePlan): PreparedStep;
  /** Gradients, by the number of their bucket in a step that exchanges each tensor by itself. */
  gradients(): readonly GradientTensor[];
  /**
   * What exchanging some of them in one bucket takes by itself, see `traceExchange`: milliseconds, where a step takes
   * seconds.
   */
  exchange(tensors: readonly GradientTensor[], plan?: ExchangePlan): PreparedGraph;
  /** What the job would decide by these times before its first step, where its exchange is planned. */
  planBy(times: PricedTimes): BucketedPlan;
  /** The same job with other values, as of `set`. Its samples are loaded anew only where it names others. */
  with(set: readonly string[]): Promise<ProfiledJob>;
  /** By mesh axis. */
  groups(): { readonly [axis: string]: AxisGroups };
  /** Measure the links between its ranks. @throws ConfigError where they are threads, which have none. */
  links(): Promise<LinkFile>;
  /** Measure what the backend gets through, in a moment. */
  rates(): Promise<BackendRates>;
  /**
   * Make some steps, and nothing else: no checkpoint, no evaluation, no folder that stays.
   *
   * @param options with `detailEvery`, one of so many steps is recorded in detail, and the others as a span each.
   * @throws what brought the run down.
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
 * What a job computes on here. `auto` is a GPU where there is one: which of both is faster is what people want to see.
 */
const settledBackend = async (
  asked: Job["backend"],
): Promise<{ readonly name: BackendName; readonly device: DeviceFacts | undefined }> => {
  if (asked === "cpu") return { name: "cpu", device: undefined };
  const { webgpu } = await surveyHardware({ always: asked === "webgpu" });
  if ("facts" in webgpu && (asked === "webgpu" || !webgpu.facts.software))
    return { name: "webgpu", device: webgpu.facts };
  if (asked === "webgpu")
    throw new ConfigError([
      `backend: webgpu cannot be used here: ${"install" in webgpu ? webgpu.install : "missing" in webgpu ? webgpu.missing : ""}`,
    ]);
  return { name: "cpu", device: undefined };
};

/** The WebGPU device of this machine. @throws ConfigError where there is none. */
export const deviceHere = async (): Promise<DeviceFacts> => (await settledBackend("webgpu")).device!;

/** The shaders of a job's training step on a WebGPU device, which need not be there. */
export const jobShaders = async (
  file: string,
  { set = [], ...options }: JobOptions,
  facts: DeviceFacts,
): Promise<readonly ListedShader[]> => {
  const job = await loadJob(file, overridesOf({ ...options, set, color: false }));
  return traceStep(await prepare({ ...job, compression: steady(job.compression) })).shaders(facts);
};

/** Decide by prices as a run would by measurements. */
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

/** A compression after its first, denser steps: a profile shows what the rest of a run is like. */
const steady = (compression: Job["compression"]): Job["compression"] => ({
  ...compression,
  ...("warmupSteps" in compression && { warmupSteps: 0 }),
  ...("densityWarmup" in compression && { densityWarmup: undefined }),
});

/** Quiet but for notes. */
const notes = (onNote: ((line: string) => void) | undefined): Progress => ({
  update: () => undefined,
  note: (line) => onNote?.(line),
  close: () => undefined,
});

/**
 * Open a job to look at where its time goes.
 *
 * @throws ConfigError, DataError, ModuleError for what is wrong with it.
 */
export const openJob = (file: string, options: JobOptions = {}): Promise<ProfiledJob> =>
  openWith(file, options, undefined);

/** @param before the job with other values, whose samples are at hand. */
const openWith = async (
  file: string,
  { set = [], ...options }: JobOptions,
  before: Pick<Prepared, "job" | "data"> | undefined,
): Promise<ProfiledJob> => {
  const loaded = await loadJob(file, overridesOf({ ...options, set, color: false }));
  const { name: backend, device } = await settledBackend(loaded.backend);
  const job: Job = { ...loaded, backend, compression: steady(loaded.compression) };
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
