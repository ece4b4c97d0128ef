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
import { type Backend, type Communicator, type Communicators, leafPaths, spanned } from "@skein/tensor-core";
import { bestAfter, type BestSoFar, comparesEvaluations, comparisonOf, endsEarly } from "../evaluation/best-so-far.ts";
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

/** What a rank trains with. */
export interface RankRun {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  /** Of each axis of the mesh. */
  readonly communicators: Communicators;
  /** Of all ranks. */
  readonly world: Communicator;
  /** Of those communicators. */
  readonly waitClock: WaitClock;
  readonly rank: number;
  readonly train: TrainingSamples;
  /** How its images change from epoch to epoch. */
  readonly augmentation?: Augmentation | undefined;
  /** What a label of these is. */
  readonly predicts: Prediction;
  readonly totalSteps: number;
  readonly firstStep: number;
  /** See `stepOffsetAfter`. */
  readonly stepOffset: number;
  /** Where lanes of a stream stand before the first step. */
  readonly lanes?: readonly LanePosition[] | undefined;
  /** How evaluations compared so far, where that is known. */
  readonly best?: BestSoFar | undefined;
  /** What was measured and decided before the run. */
  readonly plan?: ExchangePlan | undefined;
  readonly stop: StopSignal;
  /** Folder of the run. */
  readonly output: string;
  /** Evaluate and save nothing. Default: false. */
  readonly stepsOnly?: boolean | undefined;
  readonly trace?: StepTrace | undefined;
  /** Sums over this rank's share of the held-out samples. */
  readonly evaluate: (state: DeviceState, step: number) => Promise<EvaluationSums>;
  readonly checkpoints: Checkpoints;
  readonly report: Pick<
    RankReport,
    "stepped" | "updated" | "evaluated" | "moved" | "routed" | "histograms" | "remark" | "damaged" | "cutShort"
  >;
  /** Called before each step with the state that it will consume, and the step's number. */
  readonly beforeStep?: ((state: DeviceState, step: number) => Promise<DeviceState>) | undefined;
}

/** Where a rank's parts of checkpoints go. */
export interface Checkpoints {
  /**
   * Resolves once the state may change again; what was copied of it is written beside the next steps. Throws what an
   * earlier save failed with.
   *
   * @param lanes of a stream: where those that this rank reads stand.
   */
  save(state: DeviceState, step: number, lanes: readonly PlacedLane[] | undefined): Promise<void>;
  /** Look what became of it, without waiting. Throws what a save failed with. */
  look(): void;
  /** Resolves once all that was saved is written. */
  idle(): Promise<void>;
}

/** Whether something that comes after every so many steps comes after this one. */
const isDue = (step: number, every: number | undefined): boolean =>
  every !== undefined && every > 0 && step % every === 0;

/**
 * Train from `firstStep` to the end, or until the stop signal; evaluate and save when due. Saves at the end in any
 * case, unless that very step was where it began.
 *
 * @returns the steps done.
 * @throws NonFiniteError for a non-finite loss or gradient, naming the tensor; the state is then that of the step
 * before. RunError where ranks hold different parameters.
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
  const ofParts = remarkOnParts(job, parts.model, leafPaths(initial.model).length > 0);
  if (ofParts !== undefined) report.remark(ofParts);
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
  const places = Array.from({ length: job.ranks }, (_, other) => placeOf(job, other));
  const requireReplicas = replicaCheck(backend, world, parts, places);

  const compares = comparesEvaluations(job);
  const total = totals(backend, communicators, everyRankAxis(parts.mesh));
  const comparison = comparisonOf(job);
  const compared = comparedFigures(run.predicts, parts.model.metrics)[comparison.figure]!;
  let { best } = run;
  const evaluatesTogether = parts.model.sharding !== undefined || compares;
  let [saved, evaluated] = [firstStep, -1];
  let isCutShort = false;
  /** Behind the last batch, as far as a rank of the run knows. */
  let lanes: readonly PlacedLane[] | undefined;
  const save = async (): Promise<void> => {
    if (stepsOnly || saved === state.done) return;
    const settled = await state.settled();
    await spanned(spanSink, { name: `save after step ${state.done}`, track: "host" }, async () => {
      if (job.replicas.checkEverySteps > 0) await requireReplicas(settled, state.done); // rank 0 saves for all
      await checkpoints.save(settled, state.done, lanes);
    });
    saved = state.done;
  };
  /** Samples cannot be had: the run ends after a step that all ranks do, and its state is saved. */
  const cutShort = (error: DataError): void => {
    if (isCutShort) return;
    isCutShort = true;
    stop.request(); // at once, since no rank of this process may begin more than one step until all have agreed
    report.cutShort(error);
  };
  /** Sums over this rank's part; undefined where samples of it cannot be had. */
  const judge = async (settled: DeviceState): Promise<EvaluationSums | undefined> => {
    try {
      return await run.evaluate(settled, state.done);
    } catch (error) {
      // Where ranks evaluate together the others wait for this one.
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
      const sums = await judge(settled);
      // What a run goes on from was compared before it was saved.
      if (compares && state.done > firstStep) {
        // The same numbers on all ranks, which must agree on what follows.
        const [sum, per, count] = await total(
          [compared.sum, compared.per, "count"].map((name) => sums?.[name] ?? Number.NaN),
        );
        // Not comparable for one rank, so for none.
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
   * Whether the next step may begin. Each step waits until samples of the one after it are there, too: where they never
   * will be, this rank asks for a stop before the others can have begun that one, since they need it for this one.
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
      const taken = await spanned(spanSink, { name: "next batch", track: "data" }, () => batches.next());
      const { batch, position, keptImages } = taken;
      ({ lanes } = taken);
      meter.hasBatch(
        keptImages === undefined ? undefined : keptImages / (job.batch / batchPartOf(job, rank).worldSize),
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
      // Before anything is saved: whoever goes on from there finds experts where an undisturbed run has them.
      await placing?.after(state, tree);

      // Where ranks evaluate together all of them do, whoever has heard of a stop; the loop ends before the next step.
      if (!evaluatesTogether && stop.stopsAfter(state.done)) break;
      const evaluates = isDue(state.done + run.stepOffset, evaluateEvery) || isDue(state.done, everySteps);
      // What is saved tells how evaluations compare, this one among them.
      if (evaluates && compares) await evaluate();
      const isBest = job.checkpoint.best === true && evaluated === state.done && best?.step === state.done;
      if (isBest || isDue(state.done, job.checkpoint.everySteps)) await save();
      if (evaluates) await evaluate();
    }
    const early = state.done < totalSteps && endsEarly(job, best);
    if (early)
      report.remark(
        `step ${state.done}: the run ends early; ${best!.since} evaluations in a row were no better than the one after step ${best!.step}`,
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
