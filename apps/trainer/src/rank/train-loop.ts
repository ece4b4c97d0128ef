import {
  type Augmentation,
  batchTree,
  DataError,
  positionOf,
  type LanePosition,
  type PlacedLane,
  stepsPerEpoch,
  type TrainingSamples,
} from "@skein/data";
import { Prefetcher } from "@skein/data/node";
import type { BestSoFar } from "@skein/run-files/node";
import { type Backend, type Communicator, type Communicators, leafPaths, spanned } from "@skein/tensor-core";
import { bestAfter, comparesEvaluations, comparisonOf, endsEarly } from "../evaluation/compare-evaluations.ts";
import { comparedFigures } from "../evaluation/evaluation-figures.ts";
import { firstTunedBytes } from "../building/build-exchange.ts";
import { CompiledSteps } from "../step/compiled-steps.ts";
import type { EvaluationSums } from "../evaluation/evaluation-sums.ts";
import type { Job } from "../job/job.ts";
import { histogramRecorder } from "./histogram-recorder.ts";
import { LiveState, type LiveStateInput } from "../step/live-state.ts";
import { agreement, totals } from "../planning/agree.ts";
import { BucketTuner } from "../planning/bucket-tuner.ts";
import type { ExchangePlan } from "../plans/exchange-plan.ts";
import type { RankReport } from "./rank-report.ts";
import { idlePlacement } from "../plans/placed-anew.ts";
import { rePlacement } from "../placement/re-placement.ts";
import { routingRecorder } from "../placement/routing-recorder.ts";
import { remarkOnParts } from "./remark-on-parts.ts";
import { replicaCheck } from "../step/replica-check.ts";
import type { Prediction } from "../task/task.ts";
import { StepMeter, type StepTrace } from "./step-meter.ts";
import type { StopSignal } from "./stop-signal.ts";
import type { WaitClock } from "./timed-communicator.ts";
import type { DeviceState, Parts } from "../step/train-state.ts";
import { batchPartOf, everyRankAxis, placeOf } from "../job/mesh.ts";

/** Inputs of a rank's training loop. */
export interface RankRun {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  /** Communicators by mesh axis. */
  readonly communicators: Communicators;
  /** Communicator of all ranks. */
  readonly world: Communicator;
  /** Time that this rank has spent waiting for collectives of `communicators` and `world`. */
  readonly waitClock: WaitClock;
  readonly rank: number;
  readonly train: TrainingSamples;
  /** Random changes applied to images, different in each epoch. Absent: none. */
  readonly augmentation?: Augmentation | undefined;
  /** Kind of value that labels are. */
  readonly predicts: Prediction;
  readonly totalSteps: number;
  readonly firstStep: number;
  /** Step offset of the run, see `stepOffsetAfter`. */
  readonly stepOffset: number;
  /**
   * Stream lane positions before the first step. Undefined: training samples are not a stream, or lanes start at their
   * beginnings.
   */
  readonly lanes?: readonly LanePosition[] | undefined;
  /** Best of the evaluations so far. Absent: unknown. */
  readonly best?: BestSoFar | undefined;
  /** Plan made before the run. */
  readonly plan?: ExchangePlan | undefined;
  readonly stop: StopSignal;
  /** Output folder of the run. */
  readonly output: string;
  /** Whether evaluations and checkpoints are skipped. Default: false. */
  readonly stepsOnly?: boolean | undefined;
  readonly trace?: StepTrace | undefined;
  /** Computes the evaluation sums of this rank's share of the held-out samples. */
  readonly evaluate: (state: DeviceState, step: number) => Promise<EvaluationSums>;
  readonly checkpoints: Checkpoints;
  readonly report: Pick<
    RankReport,
    "stepped" | "updated" | "evaluated" | "moved" | "routed" | "histograms" | "remark" | "damaged" | "cutShort"
  >;
  /** Called before each step with the state that the step will consume, and the step number. */
  readonly beforeStep?: ((state: DeviceState, step: number) => Promise<DeviceState>) | undefined;
}

/** Saves this rank's part of each checkpoint. */
export interface Checkpoints {
  /**
   * Saves a checkpoint. Resolves when the state may change again; the copy is written during the next steps. Throws the
   * error of an earlier save.
   *
   * @param lanes Positions of the stream lanes read by this rank.
   */
  save(state: DeviceState, step: number, lanes: readonly PlacedLane[] | undefined): Promise<void>;
  /** Throws the error of a failed save, without waiting for running saves. */
  look(): void;
  /** Resolves when all saved checkpoints are written. */
  idle(): Promise<void>;
}

/** Whether an action with an interval of `every` steps is due after `step`. */
const isDue = (step: number, every: number | undefined): boolean =>
  every !== undefined && every > 0 && step % every === 0;

/**
 * Trains from `firstStep` to the last step, or until the stop signal; evaluates and saves when due. Always saves at the
 * end, unless no step was completed.
 *
 * @returns the number of completed steps.
 * @throws NonFiniteError for a non-finite loss or gradient, naming the tensor; the state is then the state before the
 * step. RunError if ranks have different parameters.
 */
export const trainLoop = async (initial: DeviceState, run: RankRun): Promise<number> => {
  const {
    job,
    parts,
    backend,
    communicators,
    world,
    rank,
    train,
    totalSteps,
    firstStep,
    stop,
    report,
    checkpoints,
    stepsOnly = false,
  } = run;
  const spanSink = run.trace?.recorder;
  const stepsAnEpoch = stepsPerEpoch(train.count, job.batch);
  const { everyEpochs, everySteps } = job.evaluation;
  const evaluateEvery = everyEpochs && everyEpochs * stepsAnEpoch;

  const steps = new CompiledSteps({ job, parts, backend, communicators, spanSink });
  const updated: LiveStateInput["updated"] = (step, update) => report.updated(step, update);
  const state = new LiveState({
    job,
    backend,
    steps,
    initial,
    freezing: parts,
    firstStep,
    updated,
    curvature: parts.curvature,
    figureNames: parts.figureNames,
    remark: (text, isOwn) => report.remark(text, isOwn),
  });
  const meter = new StepMeter({ world, waitClock: run.waitClock, firstStep, trace: run.trace });
  const agree = agreement(backend, communicators, everyRankAxis(parts.mesh));
  const tuner =
    job.buckets.kind === "tuned" && job.ranks > 1
      ? new BucketTuner(job.buckets, firstTunedBytes(job.buckets), agree)
      : undefined;
  const placing = rePlacement({
    job,
    parts,
    backend,
    communicators,
    world,
    plan: run.plan,
    moved: (step, layers, seconds) => report.moved(step, layers, seconds),
  });
  const idle = idlePlacement(job);
  if (idle !== undefined) report.remark(idle);
  const partsRemark = remarkOnParts(job, parts.model, leafPaths(initial.model).length > 0);
  if (partsRemark !== undefined) report.remark(partsRemark);
  const routings = routingRecorder({
    job,
    parts,
    backend,
    communicators,
    routed: (step, layers) => report.routed(step, layers),
  });
  const histograms = stepsOnly
    ? undefined
    : histogramRecorder({
        job,
        parts,
        backend,
        world,
        rank,
        steps,
        output: run.output,
        told: (step, parameters) => report.histograms(step, parameters),
        remark: (text) => report.remark(text),
      });
  const coordinates = Array.from({ length: job.ranks }, (_, other) => placeOf(job, other));
  const requireReplicas = replicaCheck(backend, world, parts, coordinates);

  const compares = comparesEvaluations(job);
  const total = totals(backend, communicators, everyRankAxis(parts.mesh));
  const comparison = comparisonOf(job);
  const compared = comparedFigures(run.predicts, parts.model.metrics)[comparison.figure]!;
  let { best } = run;
  const evaluatesTogether = parts.model.sharding !== undefined || compares;
  let [saved, evaluated] = [firstStep, -1];
  let isCutShort = false;
  /** Lane positions after the last batch. Undefined: this rank does not know them. */
  let lanes: readonly PlacedLane[] | undefined;
  const save = async (): Promise<void> => {
    if (stepsOnly || saved === state.done) return;
    const settled = await state.settled();
    await spanned(spanSink, { name: `save after step ${state.done}`, track: "host" }, async () => {
      if (job.replicas.checkEverySteps > 0) await requireReplicas(settled, state.done); // rank 0 saves for all ranks
      await checkpoints.save(settled, state.done, lanes);
    });
    saved = state.done;
  };
  /**
   * Handles unreadable samples: requests a stop after a step that all ranks complete, after which the state is saved.
   */
  const cutShort = (error: DataError): void => {
    if (isCutShort) return;
    isCutShort = true;
    stop.request(); // immediately: ranks of this process may be at most one step ahead of the agreed last step
    report.cutShort(error);
  };
  /** Computes sums over this rank's part. Undefined: samples of this part are unreadable. */
  const evaluateOwnPart = async (settled: DeviceState): Promise<EvaluationSums | undefined> => {
    try {
      return await run.evaluate(settled, state.done);
    } catch (error) {
      // If ranks evaluate together, other ranks are waiting for this rank.
      if (!(error instanceof DataError) || parts.model.sharding !== undefined) throw error;
      cutShort(error);
      return undefined;
    }
  };
  const evaluate = async (): Promise<void> => {
    if (stepsOnly || evaluated === state.done) return;
    const settled = await state.settled();
    await spanned(spanSink, { name: `evaluate after step ${state.done}`, track: "host" }, async () => {
      const began = performance.now();
      const sums = await evaluateOwnPart(settled);
      // The state from which a run resumes was already compared before it was saved.
      if (compares && state.done > firstStep) {
        // All ranks use the same sums, because ranks must agree on the following decision.
        const [sum, per, count] = await total(
          [compared.sum, compared.per, "count"].map((name) => sums?.[name] ?? Number.NaN),
        );
        // If the metrics of one rank are missing, no rank can compare.
        if (!Number.isNaN(count)) best = bestAfter(comparison, best, state.done, sum! / per!);
      }
      if (sums === undefined) return;
      report.evaluated(state.done, sums, (performance.now() - began) / 1000, best);
    });
    evaluated = state.done;
  };

  const position = positionOf(firstStep + run.stepOffset, stepsAnEpoch);
  const batches = new Prefetcher(train, {
    batchSize: job.batch,
    seed: job.seed,
    ...batchPartOf(job, rank),
    position,
    augmentation: run.augmentation,
    lanes: run.lanes,
    damaged: (image) => report.damaged(image),
  });
  /**
   * Whether the next step may begin. Each step also waits for the samples of the following step. If these samples are
   * unreadable, this rank requests a stop before other ranks can begin the following step, because other ranks need
   * this rank in the current step.
   */
  const mayBegin = async (): Promise<boolean> => {
    meter.begin();
    const missing = await spanned(spanSink, { name: "batches ahead", track: "data" }, () =>
      batches.ahead(Math.min(2, totalSteps - state.done)),
    );
    if (missing instanceof DataError) cutShort(missing);
    return stop.begin(state.done + 1);
  };
  try {
    while (state.done < totalSteps && !endsEarly(job, best) && (await mayBegin())) {
      const nextBatch = await spanned(spanSink, { name: "next batch", track: "data" }, () => batches.next());
      const { batch, position, cachedImages } = nextBatch;
      ({ lanes } = nextBatch);
      meter.hasBatch(
        cachedImages === undefined ? undefined : cachedImages / (job.batch / batchPartOf(job, rank).worldSize),
      );
      const tree = batchTree(batch);
      if ((await histograms?.isDue(state.done)) === true)
        await meter.apart(() =>
          spanned(spanSink, { name: `histograms after step ${state.done}`, track: "host" }, () =>
            histograms!.before(state, tree),
          ),
        );
      if (run.beforeStep !== undefined) await state.replace(run.beforeStep);
      const figures = await state.step(tree);
      const costs = meter.end(state.done);
      checkpoints.look();
      report.stepped(state.done, position, figures, costs);

      if (isDue(state.done, job.replicas.checkEverySteps)) await requireReplicas(state.current, state.done);
      const tuned = await tuner?.stepped(costs.seconds);
      if (tuned?.bucketBytes !== undefined) await state.rebucket(tuned.bucketBytes);
      if (tuned?.remark !== undefined) report.remark(tuned.remark);

      await routings?.after(state, tree);
      // Before anything is saved, so that a resumed run has the same experts on each rank as an uninterrupted run.
      await placing?.after(state, tree);

      // If ranks evaluate together, all ranks evaluate, even if some have received a stop. The loop then ends before
      // the next step.
      if (!evaluatesTogether && stop.stopsAfter(state.done)) break;
      const evaluates = isDue(state.done + run.stepOffset, evaluateEvery) || isDue(state.done, everySteps);
      // A checkpoint records the comparison of evaluations, including the evaluation after this step.
      if (evaluates && compares) await evaluate();
      const isBest = job.checkpoint.best === true && evaluated === state.done && best?.step === state.done;
      if (isBest || isDue(state.done, job.checkpoint.everySteps)) await save();
      if (evaluates) await evaluate();
    }
    const early = state.done < totalSteps && endsEarly(job, best);
    if (early)
      report.remark(
        `step ${state.done}: the run ends early; the last ${best!.since} evaluations were not better than the evaluation after step ${best!.step}`,
      );
    const isOver = early || state.done >= totalSteps;
    if (isOver && compares) await evaluate();
    await save();
    if (isOver) await evaluate();
    await checkpoints.idle();
  } finally {
    await batches.close();
    agree.release();
    total.release();
    placing?.release();
    routings?.release();
  }
  return state.done;
};
