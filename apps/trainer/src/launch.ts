import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { createThreadWorld } from "@skein/collectives/node";
import { denseBytes } from "@skein/compressors";
import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import { positionOf } from "@skein/data";
import type { Span } from "@skein/tensor-core";
import type { BackendName } from "./backend.ts";
import {
  type Checkpoint,
  commitCheckpoint,
  discardPartial,
  hasCheckpoint,
  type Manifest,
  newestCheckpoint,
  type SavedFile,
} from "./checkpoint.ts";
import { writeChromeTrace } from "./chrome-trace.ts";
import { describeError, explainDiskFull, reviveError } from "./errors.ts";
import type { EvaluationSums } from "./evaluate.ts";
import { nodeFiles } from "./files.ts";
import type { RankInput, RankMessage } from "./messages.ts";
import type { MetricSink } from "./metrics.ts";
import type { Prepared } from "./prepare.ts";
import type { Progress } from "./progress.ts";
import type { StopSignal } from "./stop-signal.ts";
import type { Summary } from "./summary.ts";

export interface LaunchInput {
  readonly prepared: Prepared;
  readonly output: string;
  /** How often a run whose device was lost goes on from its newest checkpoint by itself. Default: 3. */
  readonly maxRestarts?: number | undefined;
  /** For tests: lose the WebGPU device of rank 0 before this step of the first attempt. */
  readonly loseDeviceAt?: number | undefined;
  readonly resume?: Checkpoint | undefined;
  /** File for a Chrome trace of the first steps. */
  readonly tracePath?: string | undefined;
  readonly stop: StopSignal;
  readonly metrics: MetricSink;
  readonly progress: Progress;
}

/** What became of a run. */
export interface Outcome {
  readonly step: number;
  /** Absent where the run was stopped before its end. */
  readonly summary?: Summary;
  /** The newest checkpoint. */
  readonly checkpoint: string | undefined;
}

/** Parts that come in from all ranks, until they are complete. */
class Gathered<T> {
  private readonly byStep = new Map<number, (T | undefined)[]>();
  private readonly worldSize: number;

  constructor(worldSize: number) {
    this.worldSize = worldSize;
  }

  /** The parts of all ranks in rank order, once the last is there. */
  add(step: number, rank: number, part: T): T[] | undefined {
    const parts = this.byStep.get(step) ?? Array<T | undefined>(this.worldSize).fill(undefined);
    parts[rank] = part;
    this.byStep.set(step, parts);
    if (parts.includes(undefined)) return undefined;
    this.byStep.delete(step);
    return parts as T[];
  }
}

/** Speed over the last steps, so that a pause does not haunt the display. */
const speedWindow = 20;

/** The main thread's view of a run: it takes the ranks' messages, and prints and keeps what they say. It computes nothing. */
class Ledger {
  bytesSent = 0;
  skipped = 0;
  trainSeconds = 0;
  step: number;
  checkpoint: string | undefined;
  evaluation: EvaluationSums | undefined;
  readonly spans: Span[] = [];
  private readonly input: LaunchInput;
  private readonly firstStep: number;
  private readonly recentSeconds: number[] = [];
  private readonly saves: Gathered<readonly SavedFile[]>;
  private readonly evaluations: Gathered<EvaluationSums>;

  constructor(input: LaunchInput) {
    this.input = input;
    this.firstStep = input.resume?.manifest.step ?? 0;
    this.step = this.firstStep;
    this.checkpoint = input.resume?.folder;
    this.saves = new Gathered(input.prepared.job.ranks);
    this.evaluations = new Gathered(input.prepared.job.ranks);
  }

  take(rank: number, message: Exclude<RankMessage, { type: "failed" }>): void {
    switch (message.type) {
      case "step":
        return this.stepped(message);
      case "evaluated": {
        const parts = this.evaluations.add(message.step, rank, message);
        if (parts !== undefined) this.evaluated(message.step, parts);
        return;
      }
      case "saved": {
        const parts = this.saves.add(message.step, rank, message.files);
        if (parts !== undefined) this.saved(message.step, parts.flat());
        return;
      }
      case "spans":
        this.spans.push(...message.spans);
        return;
      case "done":
        this.step = message.step;
        this.bytesSent = Math.max(this.bytesSent, message.bytesSent);
    }
  }

  private stepped({
    step,
    epoch,
    loss,
    seconds,
    skipped,
  }: {
    readonly step: number;
    readonly epoch: number;
    readonly loss: number;
    readonly seconds: number;
    readonly skipped: boolean;
  }): void {
    const { prepared, metrics, progress } = this.input;
    this.step = step;
    this.trainSeconds += seconds;
    const compiles = step === this.firstStep + 1; // the first step says nothing about the others
    if (!compiles) this.recentSeconds.push(seconds);
    if (this.recentSeconds.length > speedWindow) this.recentSeconds.shift();
    const meanSeconds = compiles ? undefined : this.recentSeconds.reduce((sum, value) => sum + value, 0) / this.recentSeconds.length;
    const speed = meanSeconds && {
      samplesPerSecond: prepared.job.batch / meanSeconds,
      secondsLeft: (prepared.totalSteps - step) * meanSeconds,
    };
    metrics.record({ type: "step", step, epoch, loss, samplesPerSecond: prepared.job.batch / seconds, ...(skipped && { skipped: 1 }) });
    if (skipped) {
      this.skipped++;
      progress.note(`step ${step}: gradients overflowed f16; the update was left out and the loss scale halved`);
    }
    progress.update({ step, steps: prepared.totalSteps, epoch, loss, ...speed });
  }

  private evaluated(step: number, parts: readonly EvaluationSums[]): void {
    const total = (name: keyof EvaluationSums): number => parts.reduce((sum, part) => sum + part[name], 0);
    this.evaluation = { correct: total("correct"), lossSum: total("lossSum"), count: total("count") };
    const { loss, accuracy } = figures(this.evaluation);
    this.input.metrics.record({ type: "evaluation", step, loss, accuracy });
    this.input.progress.note(`step ${step}: test loss ${loss.toFixed(4)}, ${(accuracy * 100).toFixed(2)} % right`);
  }

  private saved(step: number, files: readonly SavedFile[]): void {
    const { job, stepsPerEpoch, modelHash, jobHash } = this.input.prepared;
    const manifest: Manifest = {
      format: "skein-checkpoint",
      version: 1,
      step,
      data: positionOf(step, stepsPerEpoch),
      worldSize: job.ranks,
      modelHash,
      jobHash,
      files,
    };
    this.checkpoint = commitCheckpoint(nodeFiles, this.input.output, manifest, job.checkpoint.keep);
    this.input.metrics.record({ type: "checkpoint", step, folder: this.checkpoint });
  }

  summary(): Summary {
    const { prepared, output } = this.input;
    const { loss, accuracy } = figures(this.evaluation!);
    const steps = this.step - this.firstStep;
    const predictsBytes = prepared.data.predicts === "bytes";
    return {
      ...(predictsBytes ? {} : { testAccuracy: accuracy }),
      testLoss: loss,
      ...(predictsBytes ? { bitsPerByte: loss / Math.LN2 } : {}),
      backend: prepared.job.backend as BackendName,
      ...(prepared.job.precision.kind === "f32" ? {} : { skippedSteps: this.skipped }),
      samplesPerSecond: steps === 0 ? 0 : (steps * prepared.job.batch) / this.trainSeconds,
      bytesSentPerRank: this.bytesSent,
      denseBytesPerRank: Math.round(denseBytes(prepared.params, prepared.job.ranks) * steps),
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      seconds: performance.now() / 1000,
      checkpoint: this.checkpoint ?? output,
    };
  }
}

const figures = ({ correct, lossSum, count }: EvaluationSums): { readonly loss: number; readonly accuracy: number } => ({
  loss: lossSum / count,
  accuracy: correct / count,
});

/** A step leaves little behind, and all of it short-lived. V8's default lets this part of the heap grow to dozens of MiB per thread before it looks. */
const maxYoungGenerationSizeMb = 4;

const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));

const graceMilliseconds = 5000;

/**
 * See failed ranks out. They end by themselves once a peer is reported lost; a thread that is torn from an open WebGPU device takes the
 * process with it, so only those that hang are ended by force.
 */
const endWorkers = async (workers: readonly Worker[]): Promise<void> => {
  const ended = workers.map((worker) =>
    worker.threadId === -1 ? Promise.resolve() : new Promise<void>((resolve) => worker.once("exit", () => resolve())),
  );
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMilliseconds);
  });
  await Promise.race([Promise.all(ended), timeout]);
  clearTimeout(timer);
  await Promise.all(workers.map((worker) => worker.terminate()));
};

/** Start the ranks and see them to their end. Rejects with the first failure, and names the rank. */
const runRanks = async (input: LaunchInput, ledger: Ledger, traceOrigin: number | undefined): Promise<void> => {
  const { job, data, totalSteps } = input.prepared;
  const memory = createSharedMemory();
  const module = await compileWasm(await detectBuild());
  const world = createThreadWorld({ worldSize: job.ranks, memory, kernels: module });
  const workers: Worker[] = [];
  let failed = true;
  try {
    await Promise.all(
      Array.from({ length: job.ranks }, (_, rank) => {
        const workerData: RankInput = {
          job,
          // A job is prepared with its backend resolved.
          backend: job.backend as BackendName,
          loseDeviceAt: rank === 0 ? input.loseDeviceAt : undefined,
          connection: world.connection(rank),
          module,
          train: data.train,
          test: data.test,
          totalSteps,
          output: input.output,
          resume: input.resume && { folder: input.resume.folder, step: input.resume.manifest.step },
          traceOrigin,
          stop: input.stop.words.buffer as SharedArrayBuffer,
        };
        const worker = new Worker(new URL(`./rank${extension}`, import.meta.url), {
          workerData,
          name: `rank ${rank}`,
          resourceLimits: { maxYoungGenerationSizeMb },
        });
        workers.push(worker);
        world.watch(rank, worker);
        return new Promise<void>((resolve, reject) => {
          let done = false;
          worker.on("message", (message: RankMessage) => {
            try {
              if (message.type === "failed") {
                world.reportLost(rank); // the others stop waiting for it
                return reject(reviveError(message.error, `rank ${rank}`));
              }
              ledger.take(rank, message);
              if (message.type === "done") {
                done = true;
                resolve();
              }
            } catch (error) {
              reject(error as Error);
            }
          });
          worker.once("error", (error) => reject(reviveError(describeError(error), `rank ${rank}`)));
          worker.once("exit", (code) => {
            if (!done)
              reject(
                reviveError(
                  { kind: "environment", code: "rank-failed", message: `its thread ended with code ${code} before the run did`, stack: "" },
                  `rank ${rank}`,
                ),
              );
          });
        });
      }),
    );
    failed = false;
  } finally {
    if (failed) await endWorkers(workers);
    await world.close().catch((error: unknown) => {
      if (!failed) throw error; // else the first failure is the one to tell
    });
  }
};

/**
 * Run a prepared job with one thread per rank. On failure nothing of an unfinished checkpoint is left behind. A run that lost its
 * device goes on from the newest checkpoint, or from the beginning where there is none yet.
 *
 * @throws the first rank's error.
 */
export const launch = async (input: LaunchInput): Promise<Outcome> => {
  const { output, progress, metrics, maxRestarts = 3 } = input;
  let attempt = input;
  for (let restarts = 1; ; restarts++) {
    try {
      return await launchOnce(attempt);
    } catch (error) {
      const { code, message } = describeError(error);
      if (code !== "device-lost" || restarts > maxRestarts) throw error;
      const resume = hasCheckpoint(nodeFiles, output)
        ? newestCheckpoint(nodeFiles, output, (reason) => progress.note(`passed over a damaged checkpoint: ${reason}`))
        : undefined;
      metrics.rewind(resume?.manifest.step ?? 0);
      progress.note(`${message.split(";")[0]}; going on from ${resume?.folder ?? "the beginning"} (restart ${restarts} of ${maxRestarts})`);
      attempt = { ...input, resume, loseDeviceAt: undefined };
    }
  }
};

const launchOnce = async (input: LaunchInput): Promise<Outcome> => {
  const ledger = new Ledger(input);
  discardPartial(nodeFiles, input.output); // what a killed run left
  try {
    await runRanks(input, ledger, input.tracePath === undefined ? undefined : performance.timeOrigin + performance.now());
    if (input.tracePath !== undefined) writeChromeTrace(input.tracePath, ledger.spans);
    const finished = ledger.step >= input.prepared.totalSteps && ledger.evaluation !== undefined;
    if (!finished) return { step: ledger.step, checkpoint: ledger.checkpoint };
    const summary = ledger.summary();
    writeFileSync(join(input.output, "summary.json"), `${JSON.stringify(summary, undefined, 2)}\n`);
    return { step: ledger.step, summary, checkpoint: ledger.checkpoint };
  } catch (error) {
    discardPartial(nodeFiles, input.output);
    throw explainDiskFull(error, input.output, ledger.checkpoint);
  }
};
