import type { EvaluationFigures } from "./evaluation-figures.ts";
import type { StepProgress } from "./progress.ts";

/** Event at the start of a new or resumed run. */
export interface StartEvent {
  readonly type: "start";
  /** Output folder, with metrics, checkpoints and the job. */
  readonly output: string;
  /** Number of steps completed before this start. */
  readonly step: number;
  readonly totalSteps: number;
}

/**
 * Event after each step. After a rank is lost, a run continues from its newest checkpoint, and steps after that
 * checkpoint are reported again. A slow listener receives only the newest 1000 waiting steps. The number of dropped
 * steps is reported at the end.
 */
export interface StepEvent extends StepProgress {
  readonly type: "step";
}

/** Event after an evaluation on the held-out samples. */
export interface EvaluationEvent extends EvaluationFigures {
  readonly type: "evaluation";
  readonly step: number;
}

/** Event after a checkpoint is complete and written to disk. */
export interface CheckpointEvent {
  readonly type: "checkpoint";
  readonly step: number;
  readonly folder: string;
}

/** Event at the end of a run. */
export interface EndEvent {
  readonly type: "end";
  /** How the run ended. "stopped": on request, before its last step. */
  readonly how: "finished" | "stopped" | "failed";
  readonly step: number;
  /** Path of the newest checkpoint. Absent: there is no checkpoint. */
  readonly checkpoint?: string | undefined;
  /** Reason of a failure. Absent: the run did not fail. */
  readonly reason?: string | undefined;
}

/** Events of a run, in the process that records the run. A slow listener may miss step events, but no other events. */
export type RunEvent = StartEvent | StepEvent | EvaluationEvent | CheckpointEvent | EndEvent;
