import type { Augmentation, LanePosition, PlacedLane, TrainingSamples } from "@skein/data";
import type { Job } from "@skein/job/node";
import type { BestSoFar } from "@skein/run-files/node";
import type { DeviceState, EvaluationSums, ExchangePlan, Parts, Prediction } from "@skein/step/node";
import type { Backend, Communicator, Communicators } from "@skein/tensor-core";
import type { RankReport } from "./rank-report.ts";
import type { StepTrace } from "./step-meter.ts";
import type { StopSignal } from "./stop-signal.ts";
import type { WaitClock } from "./timed-communicator.ts";

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
  /** Type of the samples' labels, such as a class or a token. */
  readonly predicts: Prediction;
  readonly totalSteps: number;
  readonly firstStep: number;
  /** Step offset of the run, see `stepOffsetAfter`. */
  readonly stepOffset: number;
  /**
   * Positions in the training stream before the first step, one per lane. Undefined: training samples are not a stream,
   * or all lanes start at the beginning.
   */
  readonly lanes?: readonly LanePosition[] | undefined;
  /** Best evaluation so far. Absent: no earlier evaluation is known. */
  readonly best?: BestSoFar | undefined;
  /** Plan made before the first step, or reused from a checkpoint. Undefined: the job has no plan. */
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
  /** Called before each step with the current state and the step number. Returns the state that the step consumes. */
  readonly beforeStep?: ((state: DeviceState, step: number) => Promise<DeviceState>) | undefined;
}

/** Saves this rank's files of each checkpoint. */
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
