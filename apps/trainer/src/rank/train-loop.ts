import { everyRankAxis, placeOf } from "@skein/job/node";
import {
  CompiledSteps,
  type DeviceState,
  firstTunedBytes,
  idlePlacement,
  LiveState,
  rePlacement,
  replicaCheck,
  routingRecorder,
} from "@skein/step/node";
import { leafPaths, spanned } from "@skein/tensor-core";
import { type Agree, agreement } from "../planning/agree.ts";
import { BucketTuner } from "../planning/bucket-tuner.ts";
import { cutShortOnce } from "./cut-short.ts";
import { type HistogramRecorder, histogramRecorder } from "./histogram-recorder.ts";
import { isDue } from "./is-due.ts";
import type { RankRun } from "./rank-run.ts";
import { remarkOnParts } from "./remark-on-parts.ts";
import { RunEvaluations } from "./run-evaluations.ts";
import { StepBatches } from "./step-batches.ts";
import { StepMeter } from "./step-meter.ts";

/**
 * Trains from `firstStep` to the last step, or until the stop signal; evaluates and saves when due. Always saves at the
 * end, unless no step was completed.
 *
 * @returns the number of completed steps.
 * @throws NonFiniteError that names the tensor, if a loss or gradient is not finite; the state is then the state before
 * the step. RunError if ranks have different parameters.
 */
export const trainLoop = async (initial: DeviceState, run: RankRun): Promise<number> => {
  const { job, totalSteps, stop, report, checkpoints } = run;
  reportRemarks(initial, run);
  const loop = openLoop(initial, run);
  const { state, meter, batches, evaluations, tuner, routings, placing } = loop;
  try {
    while (state.done < totalSteps && !evaluations.endsEarly && (await batches.mayBegin(state.done))) {
      const { batch, position } = await batches.next();
      await recordHistograms(loop, run, batch);
      if (run.beforeStep !== undefined) await state.replace(run.beforeStep);

      const figures = await state.step(batch);
      const costs = meter.end(state.done);
      checkpoints.look();
      report.stepped(state.done, position, figures, costs);

      if (isDue(state.done, job.replicas.checkEverySteps)) await loop.requireReplicas(state.current, state.done);
      const tuned = await tuner?.stepped(costs.seconds);
      if (tuned?.bucketBytes !== undefined) await state.rebucket(tuned.bucketBytes);
      if (tuned?.remark !== undefined) report.remark(tuned.remark);
      await routings?.after(state, batch);
      // Experts move before anything is saved, so that a resumed run has the same experts on each rank as an
      // uninterrupted run.
      await placing?.after(state, batch);

      // If ranks evaluate together, all ranks evaluate, even if some ranks have received a stop. The loop then ends
      // before the next step.
      if (!evaluations.isTogether && stop.stopsAfter(state.done)) break;
      const evaluates = evaluations.isDue(state.done);
      // A checkpoint records the comparison of evaluations, including the evaluation after this step.
      if (evaluates && evaluations.compares) await evaluations.evaluate(state);
      if (evaluations.isBestToSave(state.done) || isDue(state.done, job.checkpoint.everySteps)) await save(loop, run);
      if (evaluates) await evaluations.evaluate(state);
    }
    const isEarly = state.done < totalSteps && evaluations.endsEarly;
    const isOver = isEarly || state.done >= totalSteps;
    if (isEarly) report.remark(`step ${state.done}: ${evaluations.earlyEndRemark}`);
    if (isOver && evaluations.compares) await evaluations.evaluate(state);
    await save(loop, run);
    if (isOver) await evaluations.evaluate(state);
    await checkpoints.idle();
  } finally {
    await batches.close();
    loop.agree.release();
    evaluations.release();
    placing?.release();
    routings?.release();
  }
  return state.done;
};

/** Objects that exist as long as a training loop. */
interface Loop {
  readonly state: LiveState;
  readonly meter: StepMeter;
  readonly batches: StepBatches;
  readonly evaluations: RunEvaluations;
  readonly agree: Agree & { release(): void };
  readonly tuner: BucketTuner | undefined;
  readonly placing: ReturnType<typeof rePlacement>;
  readonly routings: ReturnType<typeof routingRecorder>;
  readonly histograms: HistogramRecorder | undefined;
  readonly requireReplicas: ReturnType<typeof replicaCheck>;
  /** Number of completed steps of the last saved state. */
  savedStep: number;
}

const openLoop = (initial: DeviceState, run: RankRun): Loop => {
  const { job, parts, backend, communicators, world, rank, firstStep, report, trace } = run;
  const steps = new CompiledSteps({ job, parts, backend, communicators, spanSink: trace?.recorder });
  const state = new LiveState({
    job,
    backend,
    steps,
    initial,
    freezing: parts,
    firstStep,
    updated: (step, update) => report.updated(step, update),
    curvature: parts.curvature,
    figureNames: parts.figureNames,
    remark: (text, isOwn) => report.remark(text, isOwn),
  });
  const meter = new StepMeter({ world, waitClock: run.waitClock, firstStep, trace });
  const agree = agreement(backend, communicators, everyRankAxis(parts.mesh));
  const cutShort = cutShortOnce(run);
  const coordinates = Array.from({ length: job.ranks }, (_, other) => placeOf(job, other));
  return {
    state,
    meter,
    agree,
    evaluations: new RunEvaluations(run, cutShort),
    tuner:
      job.buckets.kind === "tuned" && job.ranks > 1
        ? new BucketTuner(job.buckets, firstTunedBytes(job.buckets), agree)
        : undefined,
    placing: rePlacement({
      ...run,
      plan: run.plan,
      moved: (step, layers, seconds) => report.moved(step, layers, seconds),
    }),
    routings: routingRecorder({ ...run, routed: (step, layers) => report.routed(step, layers) }),
    histograms:
      run.stepsOnly === true
        ? undefined
        : histogramRecorder({
            job,
            parts,
            backend,
            world,
            rank,
            steps,
            output: run.output,
            recorded: (step, parameters) => report.histograms(step, parameters),
            remark: (text) => report.remark(text),
          }),
    requireReplicas: replicaCheck(backend, world, parts, coordinates),
    savedStep: firstStep,
    // Created last, because its thread starts to read samples.
    batches: new StepBatches(run, meter, cutShort),
  };
};

/** Reports remarks about the run that are known before the first step. */
const reportRemarks = (initial: DeviceState, { job, parts, report }: RankRun): void => {
  const idle = idlePlacement(job);
  if (idle !== undefined) report.remark(idle);
  const partsRemark = remarkOnParts(job, parts.model, leafPaths(initial.model).length > 0);
  if (partsRemark !== undefined) report.remark(partsRemark);
};

/** Records histograms before a step, if due. The step time does not include the time for histograms. */
const recordHistograms = async ({ histograms, state, meter }: Loop, run: RankRun, batch: object): Promise<void> => {
  if (histograms === undefined || !(await histograms.isDue(state.done))) return;
  await meter.exclude(() =>
    spanned(run.trace?.recorder, { name: `histograms after step ${state.done}`, track: "host" }, () =>
      histograms.before(state, batch),
    ),
  );
};

/** Saves the state, unless it was already saved or the run only measures steps. */
const save = async (loop: Loop, { job, checkpoints, stepsOnly, trace }: RankRun): Promise<void> => {
  const { state, batches } = loop;
  if (stepsOnly === true || loop.savedStep === state.done) return;
  const settled = await state.settled();
  await spanned(trace?.recorder, { name: `save after step ${state.done}`, track: "host" }, async () => {
    // replicas must be equal, because rank 0 saves for all ranks
    if (job.replicas.checkEverySteps > 0) await loop.requireReplicas(settled, state.done);
    await checkpoints.save(settled, state.done, batches.lanes);
  });
  loop.savedStep = state.done;
};
