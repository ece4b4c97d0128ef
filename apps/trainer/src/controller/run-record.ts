import { type Checkpoint, commitCheckpoint, dataPositionOf, type Manifest } from "@skein/checkpoints/node";
import { nodeFiles, reviveError } from "@skein/cli/node";
import { denseBytes } from "@skein/compressors";
import { expertsOf } from "@skein/job/node";
import {
  type BestSoFar,
  type EvaluationFigures,
  flatFigures,
  formatFigures,
  formatMoves,
  measurementsOf,
  type MetricSink,
  type Progress,
  RoutingFile,
  type RunEvent,
  type SampleOutput,
  type Summary,
} from "@skein/run-files/node";
import {
  bestBefore,
  bitsOf,
  DamagedSamples,
  evaluatedOn,
  evaluationFigures,
  type EvaluationSums,
  type ExchangePlan,
  namesOf,
  savedPlan,
  totalSums,
} from "@skein/step/node";
import type { RankSpans, SkeinError, Span } from "@skein/tensor-core";
import type { BackendName } from "../backend/backend.ts";
import type { SamplesFile } from "../samples/samples-file.ts";
import type { Failures } from "./failures.ts";
import type { RankMessage } from "../rank/messages.ts";
import type { Prepared } from "../preparation/prepared.ts";

/** Inputs of a run record: the prepared job and the destinations of its results. */
export interface RunRecordInput {
  readonly prepared: Prepared;
  readonly output: string;
  readonly resume?: Checkpoint | undefined;
  /** Secret that signs written manifests and verifies manifests that are read. Absent: no signatures. */
  readonly checkpointSecret?: string | undefined;
  readonly metrics: MetricSink;
  readonly progress: Progress;
  /** Start time of the run, as returned by `performance.now()`. Default: the start of the program. */
  readonly beganAt?: number | undefined;
  /** Called if a rank cannot continue, to stop all ranks after the same step and save a checkpoint. */
  readonly cutShort: () => void;
  /** File that stores the model's outputs for the displayed samples. Absent: outputs were not requested. */
  readonly samples?: SamplesFile | undefined;
  /** Called with each event of the run. */
  readonly happened?: ((event: RunEvent) => void) | undefined;
}

/**
 * Collects one value of each rank per step. When the last rank's value for a step arrives, the values of all ranks are
 * returned.
 */
class PartCollector<T> {
  private readonly byStep = new Map<number, (T | undefined)[]>();
  private readonly worldSize: number;

  constructor(worldSize: number) {
    this.worldSize = worldSize;
  }

  /** Adds the value of a rank. Returns the values of all ranks, in rank order; undefined while values are missing. */
  add(step: number, rank: number, part: T): T[] | undefined {
    const parts = this.byStep.get(step) ?? Array<T | undefined>(this.worldSize).fill(undefined);
    parts[rank] = part;
    this.byStep.set(step, parts);
    if (parts.includes(undefined)) return undefined;
    this.byStep.delete(step);
    return parts as T[];
  }
}

type SavedMessage = Extract<RankMessage, { readonly type: "saved" }>;
type StepMessage = Extract<RankMessage, { readonly type: "step" }>;

/**
 * Number of most recent steps over which the displayed speed is averaged. Small, so that a pause affects the speed only
 * briefly.
 */
const speedWindow = 20;

/**
 * Record of a run with ranks in threads or processes. Receives the messages of ranks, and prints and stores the
 * results.
 */
export class RunRecord {
  bytesSent = 0;
  skipped = 0;
  trainSeconds = 0;
  step: number;
  checkpoint: string | undefined;
  evaluation: EvaluationSums | undefined;
  /** Exchange plan that the ranks agreed on. Undefined: the exchange is not planned from measurements. */
  plan: ExchangePlan | undefined;
  /** Best evaluation so far. Undefined: the job does not compare evaluations. */
  best: BestSoFar | undefined;
  /** Error of a rank that could not continue, so that the run ends before its last step. Undefined: no such error. */
  fault: SkeinError | undefined;
  private exposedSeconds = 0;
  private dataSeconds = 0;
  /** Sum of the cache hit rates of all steps. Undefined: images are not cached. */
  private cacheHitRates: number | undefined;
  private readonly damaged = new DamagedSamples();
  private readonly spans: Span[][] = [];
  private readonly processes: string[] = [];
  /** Peak resident memory of each process that ran ranks, in bytes. */
  private readonly memoryOfProcesses = new Map<string, number>();
  private readonly routings: RoutingFile | undefined;
  private readonly input: RunRecordInput;
  private readonly firstStep: number;
  private readonly recentSeconds: number[] = [];
  private readonly saves: PartCollector<SavedMessage>;
  private readonly evaluations: PartCollector<EvaluationSums>;
  private readonly samples: PartCollector<readonly SampleOutput[]>;

  constructor(input: RunRecordInput) {
    this.input = input;
    this.firstStep = input.resume?.manifest.step ?? 0;
    this.step = this.firstStep;
    this.checkpoint = input.resume?.folder;
    this.plan = input.resume && savedPlan(input.resume);
    this.best = bestBefore(input.prepared.job, input.resume?.manifest.best);
    const recorded = expertsOf(input.prepared.job)?.recordRouting;
    this.routings = recorded && new RoutingFile(input.output, recorded.keep, this.firstStep);
    this.saves = new PartCollector(input.prepared.job.ranks);
    this.evaluations = new PartCollector(input.prepared.job.ranks);
    this.samples = new PartCollector(input.prepared.job.ranks);
  }

  /** Handles a message of a rank. If the data of the message cannot be stored, as on a full disk, the run fails. */
  take(rank: number, message: RankMessage, failures: Failures): void {
    try {
      this.record(rank, message, failures);
    } catch (error) {
      failures.addOwn(error);
    }
  }

  private record(rank: number, message: RankMessage, failures: Failures): void {
    switch (message.type) {
      case "failed":
        return failures.add(rank, message.error);
      case "step":
        return this.stepped(message);
      case "updated": {
        const { type: _, ...update } = message;
        this.input.metrics.record({ type: "update", ...update });
        return;
      }
      case "paced": {
        const { type: _, ...pace } = message;
        this.input.metrics.record({ type: `rank-${rank}`, ...pace });
        return;
      }
      case "evaluated": {
        if (message.best !== undefined) this.best = message.best;
        const parts = this.evaluations.add(message.step, rank, message.sums);
        if (parts !== undefined) this.evaluated(message.step, parts);
        return;
      }
      case "sampled": {
        const parts = this.samples.add(message.step, rank, message.samples);
        if (parts !== undefined)
          this.input.samples?.record(
            message.step,
            parts.flat().toSorted((a, b) => a.index - b.index),
          );
        return;
      }
      case "planned":
        this.plan = message.plan;
        if (message.remark !== "") this.input.progress.note(message.remark);
        return;
      case "moved": {
        const { step, layers, seconds } = message;
        for (const line of measurementsOf(step, layers, seconds)) this.input.metrics.record(line);
        return this.input.progress.note(`step ${step}: ${formatMoves(layers, seconds)}`);
      }
      case "routed":
        return this.routings?.record(message.step, message.layers);
      case "histograms":
        return this.input.metrics.histograms(message.step, message.parameters, message.isLast);
      case "remark":
        return this.input.progress.note(message.text);
      case "damaged": {
        const line = this.damaged.add(message.image);
        if (line !== undefined) this.input.progress.note(line);
        return;
      }
      case "cut-short":
        this.fault ??= reviveError(message.error, `rank ${rank}`);
        return this.input.cutShort();
      case "saved": {
        const parts = this.saves.add(message.step, rank, message);
        if (parts !== undefined) this.saved(message.step, parts);
        return;
      }
      case "links":
        return; // sent only by ranks that measure links
      case "spans":
        // Pushed one by one: spreading a long trace as arguments would overflow the stack.
        for (const span of message.spans) (this.spans[rank] ??= []).push(span);
        return;
      case "done":
        this.step = message.step;
        this.bytesSent = Math.max(this.bytesSent, message.bytesSent);
        this.processes[rank] = message.process;
        this.memoryOfProcesses.set(message.process, message.peakMemoryBytes);
    }
  }

  private stepped({
    step,
    epoch,
    loss,
    seconds,
    exposedSeconds,
    exposedAllToAllSeconds,
    dataSeconds,
    cacheHitRate,
    bytesSent,
    residentBytes,
    update,
    skipped,
    model,
  }: StepMessage): void {
    const { prepared, metrics, progress } = this.input;
    this.step = step;
    this.trainSeconds += seconds;
    this.exposedSeconds += exposedSeconds;
    this.dataSeconds += dataSeconds;
    if (cacheHitRate !== undefined) this.cacheHitRates = (this.cacheHitRates ?? 0) + cacheHitRate;
    const compiles = step === this.firstStep + 1; // the first step is slower, because it compiles
    if (!compiles) this.recentSeconds.push(seconds);
    if (this.recentSeconds.length > speedWindow) this.recentSeconds.shift();
    const meanSeconds = compiles
      ? undefined
      : this.recentSeconds.reduce((sum, value) => sum + value, 0) / this.recentSeconds.length;
    const speed = meanSeconds && {
      samplesPerSecond: prepared.job.batch / meanSeconds,
      secondsLeft: (prepared.totalSteps - step) * meanSeconds,
    };
    metrics.record({
      type: "step",
      step,
      epoch,
      loss,
      ...bitsOf(prepared.data.predicts, loss),
      ...update,
      ...model,
      seconds,
      samplesPerSecond: prepared.job.batch / seconds,
      exposedSeconds,
      ...(exposedAllToAllSeconds !== undefined && { exposedAllToAllSeconds }),
      dataSeconds,
      ...(cacheHitRate !== undefined && { cacheHitRate }),
      bytesSent,
      ...(residentBytes !== undefined && { residentBytes }),
      ...(skipped && { skipped: 1 }),
    });
    if (skipped) {
      this.skipped++;
      progress.note(`step ${step}: gradients overflowed f16; the update was skipped, and the loss scale was halved`);
    }
    const progressState = {
      step,
      steps: prepared.totalSteps,
      epoch,
      loss,
      ...bitsOf(prepared.data.predicts, loss),
      cacheHitRate,
      ...speed,
    };
    progress.update(progressState);
    this.input.happened?.({ type: "step", ...progressState });
  }

  private evaluated(step: number, parts: readonly EvaluationSums[]): void {
    this.evaluation = totalSums(parts);
    const figures = this.figures();
    this.input.metrics.record({ type: "evaluation", step, ...flatFigures(figures) });
    this.input.progress.note(`step ${step}: ${formatFigures(figures, evaluatedOn(this.input.prepared.job.data))}`);
    this.input.happened?.({ type: "evaluation", step, ...figures });
  }

  /** Returns the metrics of the last evaluation. */
  private figures(): EvaluationFigures {
    const { data, model } = this.input.prepared;
    return evaluationFigures(data.predicts, this.evaluation!, model.metrics);
  }

  private saved(step: number, parts: readonly SavedMessage[]): void {
    const { prepared } = this.input;
    const { job, modelHash, jobHash, jobSettings } = prepared;
    const manifest: Manifest = {
      format: "skein-checkpoint",
      version: 2,
      step,
      data: dataPositionOf(
        step,
        prepared,
        parts.flatMap(({ lanes }) => lanes ?? []),
      ),
      worldSize: job.ranks,
      modelHash,
      jobHash,
      job: jobSettings,
      ...(this.plan && { plan: this.plan }),
      ...(this.best && { best: this.best }),
      files: parts.flatMap(({ files }) => files),
    };
    const { output, checkpointSecret } = this.input;
    this.checkpoint = commitCheckpoint(
      nodeFiles,
      output,
      manifest,
      { newest: job.checkpoint.keep, step: job.checkpoint.best ? this.best?.step : undefined },
      checkpointSecret,
    );
    this.input.metrics.record({ type: "checkpoint", step, folder: this.checkpoint });
    this.input.happened?.({ type: "checkpoint", step, folder: this.checkpoint });
  }

  /** Trace spans of all ranks, in rank order. */
  get traces(): readonly RankSpans[] {
    return this.spans.map((spans, rank) => ({ rank, process: this.processes[rank], spans }));
  }

  summary(): Summary {
    const { prepared, output } = this.input;
    const { loss, accuracy, ...others } = this.figures();
    const steps = this.step - this.firstStep;
    const classNames = namesOf(prepared.data);
    return {
      evaluatedOn: evaluatedOn(prepared.job.data),
      ...(accuracy === undefined ? {} : { testAccuracy: accuracy }),
      testLoss: loss,
      ...others,
      ...(classNames !== undefined && { classNames }),
      backend: prepared.job.backend as BackendName,
      ...(prepared.job.precision.kind === "mixed-f16" ? { skippedSteps: this.skipped } : {}),
      samplesPerSecond: steps === 0 ? 0 : (steps * prepared.job.batch) / this.trainSeconds,
      ...(prepared.job.ranks > 1 && steps > 0 && { exposedShare: this.exposedSeconds / this.trainSeconds }),
      ...(steps > 0 && { dataShare: this.dataSeconds / this.trainSeconds }),
      ...(this.cacheHitRates !== undefined && { cacheHitRate: this.cacheHitRates / steps }),
      ...(this.damaged.images > 0 && { damagedImages: this.damaged.images }),
      ...(this.damaged.leftOut > 0 && { leftOutSamples: this.damaged.leftOut }),
      bytesSentPerRank: this.bytesSent,
      denseBytesPerRank: Math.round(denseBytes(prepared.trained, prepared.job.ranks) * steps),
      peakMemoryBytes: [...this.memoryOfProcesses.values()].reduce((sum, bytes) => sum + bytes, 0),
      seconds: (performance.now() - (this.input.beganAt ?? 0)) / 1000,
      ...(this.best && { best: { figure: this.best.figure, value: this.best.value, step: this.best.step } }),
      checkpoint: this.checkpoint ?? output,
    };
  }
}
