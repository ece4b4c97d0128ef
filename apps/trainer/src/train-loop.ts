import { type DataPosition, positionOf, type Records, stepsPerEpoch } from "@skein/data";
import { Prefetcher } from "@skein/data/node";
import { type Backend, type Communicators, type DeviceArray, spanned, type Tracer } from "@skein/tensor-core";
import { firstTunedBytes, sizedBuckets } from "./build-exchange.ts";
import { CompiledSteps } from "./compiled-steps.ts";
import { NonFiniteError } from "./errors.ts";
import type { EvaluationSums } from "./evaluate.ts";
import type { Job } from "./job.ts";
import { type Agree, agreement } from "./planning/agree.ts";
import { BucketTuner } from "./planning/bucket-tuner.ts";
import { replicaCheck } from "./replica-check.ts";
import type { StopSignal } from "./stop-signal.ts";
import type { WaitClock } from "./timed-communicator.ts";
import { dataAxis, type DeviceState, type Parts } from "./train-state.ts";
import { finiteNames } from "./train-step.ts";
import { readFigures, type UpdateFigures } from "./update-figures.ts";

export interface LoopInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
  /** Of those communicators. */
  readonly waitClock: WaitClock;
  readonly rank: number;
  readonly train: Records;
  readonly totalSteps: number;
  readonly firstStep: number;
  readonly stop: StopSignal;
  /** Evaluate and save nothing. Default: false. */
  readonly stepsOnly?: boolean | undefined;
  /** Called before each step, which goes on from the state that it returns; tests make trouble here. */
  readonly beforeStep?: ((step: number, state: DeviceState) => Promise<DeviceState>) | undefined;
  readonly tracer?: Tracer | undefined;
}

/** What happens beside the steps; the loop itself touches neither disk nor messages. */
export interface LoopEvents {
  stepped(done: {
    readonly step: number;
    readonly position: DataPosition;
    readonly loss: number;
    readonly seconds: number;
    /** Of those, spent waiting for collectives. */
    readonly exposedSeconds: number;
    /** Payload that this rank has sent during the step. */
    readonly bytesSent: number;
    readonly skipped: boolean;
    /** Of the update that this step has made, but where it is made in the next one. */
    readonly update?: UpdateFigures | undefined;
  }): void;
  /** With `overlap: dear`: the update of a step was made, in the step after it or before the state was used otherwise. */
  updated(step: number, update: UpdateFigures): void;
  /** Resolves once the state may change again; what was copied of it is written beside the next steps. Throws what an earlier save failed with. */
  save(state: DeviceState, step: number): Promise<void>;
  /** Resolves once all that was saved is written. */
  saved(): Promise<void>;
  evaluate(state: DeviceState, step: number): Promise<EvaluationSums>;
  /** Something worth telling people. */
  remark(text: string): void;
}

const makeTuner = ({ buckets, ranks }: Job, agree: Agree): BucketTuner | undefined =>
  buckets.kind === "tuned" && ranks > 1 ? new BucketTuner(buckets, firstTunedBytes(buckets), agree) : undefined;

/**
 * Train from `firstStep` to the end, or until the stop signal; save and evaluate when due. Saves at the end in any case, unless that very step
 * was where it began.
 *
 * @returns the steps done.
 * @throws NonFiniteError for a non-finite loss or gradient, naming the tensor; the state is then that of the step before. RunError where ranks hold different
 * parameters.
 */
export const trainLoop = async (initial: DeviceState, input: LoopInput, events: LoopEvents): Promise<number> => {
  const { job, parts, backend, communicators, waitClock, rank, train, totalSteps, firstStep, stop, stepsOnly = false, tracer } = input;
  const perEpoch = stepsPerEpoch(train.count, job.batch);
  const steps = new CompiledSteps({ job, parts, backend, communicators, tracer });
  const agree = agreement(backend, communicators, dataAxis);
  let tuner = makeTuner(job, agree);
  const names = finiteNames(initial.params);
  const checkEvery = job.replicas.checkEverySteps;
  const isDeferred = job.overlap === "dear";
  const world = communicators[dataAxis]!;
  const requireReplicas = checkEvery === 0 ? undefined : replicaCheck(backend, world);
  const read = async (array: DeviceArray): Promise<number[]> => {
    const values = (await backend.download(array)).toNumbers();
    backend.free(array);
    return values;
  };

  let state = initial;
  let done = firstStep;
  let saved = firstStep;
  let settled = -1;
  const tellUpdate = async (step: number, update: DeviceArray): Promise<void> => {
    const figures = readFigures(await read(update));
    if (figures !== undefined) events.updated(step, figures);
  };
  // Once after a step, whoever asks: settling is a collective, and of ranks that learn of a stop at different moments one evaluates before it
  // saves and another only saves.
  const settle = async (): Promise<void> => {
    if (settled !== done) {
      const result = await steps.settle(state);
      state = result.state;
      if (result.update !== undefined) await tellUpdate(done, result.update);
    }
    settled = done;
  };
  const save = async (): Promise<void> => {
    if (stepsOnly || saved === done) return;
    await settle();
    await spanned(tracer, { name: `save after step ${done}`, track: "host" }, async () => {
      await requireReplicas?.(state, done); // rank 0 saves for all
      await events.save(state, done);
    });
    saved = done;
  };
  const evaluate = async (): Promise<void> => {
    if (stepsOnly) return;
    await settle();
    await spanned(tracer, { name: `evaluate after step ${done}`, track: "host" }, () => events.evaluate(state, done));
  };
  if (done >= totalSteps) {
    await evaluate();
    return done;
  }
  const prefetcher = new Prefetcher(train, {
    batchSize: job.batch,
    seed: job.seed,
    rank,
    worldSize: job.ranks,
    position: positionOf(done, perEpoch),
  });
  try {
    for (let stopped = false; done < totalSteps && !stopped; ) {
      if (!stop.begin(done + 1)) {
        // The stop was asked for after this rank had looked whether step `done` was the last.
        await save();
        break;
      }
      const began = performance.now();
      const startSeconds = tracer?.now() ?? 0;
      const { batch, position } = await spanned(tracer, { name: "next batch", track: "data" }, () => prefetcher.next());
      if (input.beforeStep !== undefined) state = await input.beforeStep(done + 1, state);
      const waitedBefore = waitClock.seconds;
      const sentBefore = world.bytesSent();
      const result = await steps.run(done, state, batch);
      state = result.state;
      const [[loss], finite, [skipped], figures] = await Promise.all([
        read(result.loss),
        read(result.finite),
        read(result.skipped),
        read(result.update),
      ]);
      const update = readFigures(figures);
      if (update !== undefined && isDeferred) events.updated(done, update);
      const bad = finite.indexOf(0);
      if (bad >= 0) {
        throw new NonFiniteError(
          `step ${done + 1}: ${names[bad]} is not finite (loss ${loss}); the update was not made. Lower learningRate.peak, lengthen the warm-up, or set clipNorm`,
        );
      }
      done++;
      const seconds = (performance.now() - began) / 1000;
      const exposedSeconds = waitClock.seconds - waitedBefore;
      tracer?.record({
        name: `step ${done}`,
        track: "steps",
        startSeconds, // not counted back from here: this thread may have been put aside since
        endSeconds: tracer.now(),
        args: { exposedMilliseconds: exposedSeconds * 1000 },
      });
      events.stepped({
        step: done,
        position,
        loss: loss!,
        seconds,
        exposedSeconds,
        bytesSent: world.bytesSent() - sentBefore,
        skipped: skipped === 1,
        ...(!isDeferred && { update }),
      });
      if (done % checkEvery === 0) await requireReplicas?.(state, done); // NaN where never
      const bucketBytes = await tuner?.stepped(seconds);
      if (bucketBytes !== undefined) {
        await settle();
        state = await steps.rebucket(state, sizedBuckets(state.params, bucketBytes, job.overlap));
      }
      if (tuner?.remark !== undefined) {
        events.remark(tuner.remark);
        tuner = undefined;
      }
      stopped = stop.stopsAfter(done);
      const last = done === totalSteps;
      const { everySteps } = job.checkpoint;
      const { everyEpochs } = job.evaluation;
      if (last || stopped || (everySteps !== undefined && done % everySteps === 0)) await save();
      if (last || (!stopped && everyEpochs !== undefined && done % (everyEpochs * perEpoch) === 0)) await evaluate();
    }
  } finally {
    await prefetcher.close();
    agree.release();
  }
  await events.saved();
  return done;
};
