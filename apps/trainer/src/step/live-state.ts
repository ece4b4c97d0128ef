import type { Backend, DeviceArray, LossScaleState } from "@skein/tensor-core";
import { sizedBuckets } from "../building/build-exchange.ts";
import { type Curvature, staleFactors } from "../building/curvature.ts";
import type { CompiledSteps } from "./compiled-steps.ts";
import { NonFiniteError } from "../errors.ts";
import { type Freezing, trainedOf } from "../building/frozen.ts";
import { IdleCurvature } from "./idle-curvature.ts";
import type { Job } from "../job/job.ts";
import type { DeviceState } from "./train-state.ts";
import { finiteNames } from "./train-step.ts";
import { readFigures, type UpdateFigures } from "./update-figures.ts";

/** What the host learns of a step. */
export interface StepFigures {
  /** Mean over all ranks. */
  readonly loss: number;
  /** The update was left out because f16 gradients overflowed. */
  readonly skipped: boolean;
  /** Of the update that this step has made; with `overlap: dear` it is made later. */
  readonly update: UpdateFigures | undefined;
  /** What the model tells of the step, by name. */
  readonly model?: Readonly<Record<string, number>> | undefined;
}

export interface LiveStateInput {
  readonly job: Job;
  readonly backend: Backend;
  readonly steps: CompiledSteps;
  readonly initial: DeviceState;
  /** Which parameters stay as they are. */
  readonly freezing: Freezing;
  /** Steps that `initial` has behind it. */
  readonly firstStep: number;
  /** Told of updates that are made after the step that they are of: in the next one, or when the state is settled. */
  readonly updated: (step: number, update: UpdateFigures) => void;
  /** Of optimizers that look at curvature. */
  readonly curvature: Curvature | undefined;
  /** Of what the model tells of a step. */
  readonly figureNames: readonly string[];
  /** Something worth telling people; @param isOwn that only this rank knows. */
  readonly remark: (text: string, isOwn: boolean) => void;
}

const isArray = (figures: DeviceArray | readonly []): figures is DeviceArray => "dtype" in figures;

/** The state of a run while it trains: compiled steps take it from one step to the next, on the device. */
export class LiveState {
  /** Steps behind it. */
  done: number;
  /** Number of updates behind it, with those that are on their way; read of the first state when it is asked for. */
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

  /** The state as it is, gradients that are on their way included. */
  get current(): DeviceState {
    return this.state;
  }

  /** Number of updates behind the state: steps whose update was skipped do not count. */
  async updates(): Promise<number> {
    if (this.numUpdates === undefined) {
      const { skippedSteps } = this.state.lossScale as Partial<Record<keyof LossScaleState, DeviceArray>>;
      const skipped = skippedSteps && (await this.input.backend.download(skippedSteps)).toNumbers()[0]!;
      this.numUpdates = this.done - (skipped ?? 0);
    }
    return this.numUpdates;
  }

  /** Put another state in place of `current`, which `change` consumes. */
  async replace(change: (state: DeviceState, nextStep: number) => Promise<DeviceState>): Promise<void> {
    this.state = await change(this.state, this.done + 1);
  }

  /**
   * Do the next step with this rank's part of a batch, and read what came of it.
   *
   * @throws NonFiniteError that names the tensor, for a loss or gradient that is not finite: the state is then that of
   * the step before.
   */
  async step(batch: object): Promise<StepFigures> {
    const { job, steps, updated } = this.input;
    const updates = await this.updates();
    const result = await steps.run(updates, this.state, batch);
    this.state = result.state;
    const [[loss], finite, [skipped], figures, told] = await Promise.all([
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
            ? "No update was made before it, so look at the samples (is one of them NaN or infinite?) and at the model's loss"
            : "Lower learningRate.peak, lengthen the warm-up, or set clipNorm"
        }`,
      );
    if (skipped !== 1) await this.tellStale(updates);
    const idleness = update && this.idle.look(update);
    if (idleness !== undefined) this.input.remark(`step ${this.done + 1}: ${idleness}`, false);
    this.done++;
    if (skipped !== 1) this.numUpdates = updates + 1;
    const model = Object.fromEntries(this.input.figureNames.map((name, i) => [name, told[i]!]));
    return {
      loss: loss!,
      skipped: skipped === 1,
      update: isLate ? undefined : update,
      ...(told.length > 0 && { model }),
    };
  }

  /**
   * Bring gradients that are on their way into the parameters, so that the state can be evaluated and saved.
   *
   * Once after a step, whoever asks: settling is a collective, and of ranks that learn of a stop at different moments
   * one evaluates before it saves and another only saves.
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

  /** Go on with buckets of another size. Compressors that keep something per bucket lose it. */
  async rebucket(bucketBytes: number): Promise<void> {
    const { steps, job } = this.input;
    const state = await this.settled();
    this.state = await steps.rebucket(
      state,
      sizedBuckets(trainedOf(this.input.freezing, state.params), bucketBytes, job.overlap),
    );
  }

  /** Name the factors that a refresh has made nothing of. */
  private async tellStale(updates: number): Promise<void> {
    const { curvature, backend, remark } = this.input;
    if (curvature === undefined || curvature.factorNames.length === 0) return;
    if (curvature.modeAt(updates) !== "refresh") return;
    const stale = staleFactors<DeviceArray>(this.state.optimizer)!;
    const flags = (await backend.download(stale.flags)).toNumbers();
    const names = curvature.factorNames.filter((_, i) => flags[i] === 1);
    if (names.length > 0)
      remark(
        `step ${this.done + 1}: the factor of ${names.join(", ")} is not positive definite, so what it was inverted to before is used on; raise optimizer.damping`,
        stale.isOwn,
      );
  }

  private async read(array: DeviceArray): Promise<number[]> {
    const values = (await this.input.backend.download(array)).toNumbers();
    this.input.backend.free(array);
    return values;
  }
}
