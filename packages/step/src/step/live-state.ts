import { NonFiniteError } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import type { Backend, DeviceArray, LossScaleState } from "@skein/tensor-core";
import { sizedBuckets } from "../building/build-exchange.ts";
import { type Curvature, staleFactors } from "../building/curvature.ts";
import type { CompiledSteps } from "./compiled-steps.ts";
import { type Freezing, trainedOf } from "../building/frozen.ts";
import { IdleCurvature } from "./idle-curvature.ts";
import type { DeviceState } from "./train-state.ts";
import { finiteNames } from "./train-step.ts";
import { readFigures, type UpdateFigures } from "./update-figures.ts";

/** Results of a training step, as numbers on the host. */
export interface StepFigures {
  /** Mean loss over all ranks. */
  readonly loss: number;
  /** Whether the update was skipped because f16 gradients overflowed. */
  readonly skipped: boolean;
  /** Metrics of the update made by this step. Undefined with `overlap: dear`, which applies the update later. */
  readonly update: UpdateFigures | undefined;
  /** Metrics that the model reports for this step, by name. */
  readonly model?: Readonly<Record<string, number>> | undefined;
}

export interface LiveStateInput {
  readonly job: Job;
  readonly backend: Backend;
  readonly steps: CompiledSteps;
  readonly initial: DeviceState;
  /** Parameters that training does not change. */
  readonly freezing: Freezing;
  /** Number of steps completed before `initial`. */
  readonly firstStep: number;
  /**
   * Called with the metrics of an update that `overlap: dear` applies late: during the next step, or when pending
   * gradients are applied so that the state can be evaluated or saved.
   */
  readonly updated: (step: number, update: UpdateFigures) => void;
  /** Curvature computation of a second-order optimizer. Undefined: the optimizer does not use curvature. */
  readonly curvature: Curvature | undefined;
  /** Names of the metrics that the model computes in a step. */
  readonly figureNames: readonly string[];
  /** Reports a remark for the user. @param isOwn Whether the remark concerns only this rank. */
  readonly remark: (text: string, isOwn: boolean) => void;
}

const isArray = (figures: DeviceArray | readonly []): figures is DeviceArray => "dtype" in figures;

/** State of a run during training. Compiled steps advance the state on the device. */
export class LiveState {
  /** Number of completed steps. */
  done: number;
  /** Number of updates made, including pending updates. Undefined: not yet read from the state. */
  private numUpdates: number | undefined;
  private state: DeviceState;
  private settledAt = -1;
  private readonly input: LiveStateInput;
  private readonly names: readonly string[];
  private readonly idle: IdleCurvature;

  constructor(input: LiveStateInput) {
    this.input = input;
    this.state = input.initial;
    this.done = input.firstStep;
    this.names = finiteNames(trainedOf(input.freezing, input.initial.params));
    this.idle = new IdleCurvature(input.job.optimizer);
  }

  /** Current state, which may include pending gradients. */
  get current(): DeviceState {
    return this.state;
  }

  /** Returns the number of updates made. Steps whose update was skipped are not counted. */
  async updates(): Promise<number> {
    if (this.numUpdates === undefined) {
      const { skippedSteps } = this.state.lossScale as Partial<Record<keyof LossScaleState, DeviceArray>>;
      const skipped = skippedSteps && (await this.input.backend.download(skippedSteps)).toNumbers()[0]!;
      this.numUpdates = this.done - (skipped ?? 0);
    }
    return this.numUpdates;
  }

  /** Replaces `current` by the result of `change`. Consumes `current`. */
  async replace(change: (state: DeviceState, nextStep: number) => Promise<DeviceState>): Promise<void> {
    this.state = await change(this.state, this.done + 1);
  }

  /**
   * Runs the next step with this rank's share of a batch, and reads the results.
   *
   * @throws NonFiniteError that names the tensor, if a loss or gradient is not finite. The state is then the state
   * before the step.
   */
  async step(batch: object): Promise<StepFigures> {
    const { job, steps, updated } = this.input;
    const updates = await this.updates();
    const result = await steps.run(updates, this.state, batch);
    this.state = result.state;
    const [[loss], finite, [skipped], figures, modelValues] = await Promise.all([
      this.read(result.loss),
      this.read(result.finite),
      this.read(result.skipped),
      this.read(result.update),
      isArray(result.figures) ? this.read(result.figures) : [],
    ]);
    const update = readFigures(figures);
    const isLate = job.overlap === "dear";
    if (isLate && update !== undefined) updated(this.done, update);
    const bad = finite.indexOf(0);
    if (bad >= 0)
      throw new NonFiniteError(
        `step ${this.done + 1}: ${this.names[bad]} is not finite (loss ${loss}); the update was not made. ${
          this.done === 0
            ? "No update was made before it, so check the samples (does one contain NaN or infinity?) and the model's loss"
            : "Lower learningRate.peak, lengthen the warm-up, or set clipNorm"
        }`,
      );
    if (skipped !== 1) await this.remarkOnStaleFactors(updates);
    const idleness = update && this.idle.look(update);
    if (idleness !== undefined) this.input.remark(`step ${this.done + 1}: ${idleness}`, false);
    this.done++;
    if (skipped !== 1) this.numUpdates = updates + 1;
    const model = Object.fromEntries(this.input.figureNames.map((name, i) => [name, modelValues[i]!]));
    return {
      loss: loss!,
      skipped: skipped === 1,
      update: isLate ? undefined : update,
      ...(modelValues.length > 0 && { model }),
    };
  }

  /**
   * Applies pending gradients to the parameters, so that the state can be evaluated and saved.
   *
   * Communicates at most once after a step, because all ranks must take part. If a stop reaches ranks at different
   * times, one rank may evaluate and save while another rank only saves.
   */
  async settled(): Promise<DeviceState> {
    if (this.settledAt === this.done) return this.state;
    const { state, update } = await this.input.steps.settle(this.state);
    this.state = state;
    this.settledAt = this.done;
    const figures = update && readFigures(await this.read(update));
    if (figures !== undefined) this.input.updated(this.done, figures);
    return this.state;
  }

  /** Switches to buckets of another size. Compressor state per bucket is lost. */
  async rebucket(bucketBytes: number): Promise<void> {
    const { steps, job } = this.input;
    const state = await this.settled();
    this.state = await steps.rebucket(
      state,
      sizedBuckets(trainedOf(this.input.freezing, state.params), bucketBytes, job.overlap),
    );
  }

  /** Reports the K-FAC factors that the last refresh of inverses could not invert. */
  private async remarkOnStaleFactors(updates: number): Promise<void> {
    const { curvature, backend, remark } = this.input;
    if (curvature === undefined || curvature.factorNames.length === 0) return;
    if (curvature.modeAt(updates) !== "refresh") return;
    const stale = staleFactors<DeviceArray>(this.state.optimizer)!;
    const flags = (await backend.download(stale.flags)).toNumbers();
    const names = curvature.factorNames.filter((_, i) => flags[i] === 1);
    if (names.length > 0)
      remark(
        `step ${this.done + 1}: the factor of ${names.join(", ")} is not positive definite, so its previous inverse stays in use; raise optimizer.damping`,
        stale.isOwn,
      );
  }

  private async read(array: DeviceArray): Promise<number[]> {
    const values = (await this.input.backend.download(array)).toNumbers();
    this.input.backend.free(array);
    return values;
  }
}
