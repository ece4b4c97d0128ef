import type { EvaluationFigures } from "../evaluation/evaluation-figures.ts";
import type { StepProgress } from "./progress.ts";

/** A run begins or resumes. */
export interface StartEvent {
  readonly type: "start";
  /** Folder with metrics, checkpoints and the job. */
  readonly output: string;
  /** Number of steps done before. */
  readonly step: number;
  readonly totalSteps: number;
}

/**
 * A step is done. After a lost rank, a run continues from its newest checkpoint, and steps after that checkpoint are
 * reported again. A slow listener gets the newest 1000 waiting steps; the number of dropped steps is reported at the
 * end.
 */
export interface StepEvent extends StepProgress {
  readonly type: "step";
}

/** The run was evaluated on its held-out samples. */
export interface EvaluationEvent extends EvaluationFigures {
  readonly type: "evaluation";
  readonly step: number;
}

/** A checkpoint is complete and on the disk. */
export interface CheckpointEvent {
  readonly type: "checkpoint";
  readonly step: number;
  readonly folder: string;
}

/** A run has ended. */
export interface EndEvent {
  readonly type: "end";
  /** "stopped": ended on request before its last step. */
  readonly how: "finished" | "stopped" | "failed";
  readonly step: number;
  /** Newest checkpoint. Absent: there is none. */
  readonly checkpoint?: string | undefined;
  /** Reason of a failure. */
  readonly reason?: string | undefined;
}

/**
 * Events of a run, in the process that keeps its record. All events except steps reach every listener, even a slow one.
 */
export type RunEvent = StartEvent | StepEvent | EvaluationEvent | CheckpointEvent | EndEvent;
