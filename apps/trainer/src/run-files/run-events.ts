import type { EvaluationFigures } from "../evaluation/evaluation-figures.ts";
import type { Standing } from "./progress.ts";

/** A run begins, or goes on. */
export interface StartEvent {
  readonly type: "start";
  /** The folder with metrics, checkpoints and the job. */
  readonly output: string;
  /** Steps that were done before. */
  readonly step: number;
  readonly totalSteps: number;
}

/**
 * A step is done. After a lost rank a run goes on from its newest checkpoint, and steps after that come again. Who is
 * slower than steps are gets the newest 1000 of those that wait; how many were left out is told at the end.
 */
export interface StepEvent extends Standing {
  readonly type: "step";
}

/** The run was judged by its held-out samples. */
export interface EvaluationEvent extends EvaluationFigures {
  readonly type: "evaluation";
  readonly step: number;
}

/** A checkpoint is whole, and on the disk. */
export interface CheckpointEvent {
  readonly type: "checkpoint";
  readonly step: number;
  readonly folder: string;
}

/** A run is over. */
export interface EndEvent {
  readonly type: "end";
  /** Stopped: asked to, before its last step. */
  readonly how: "finished" | "stopped" | "failed";
  readonly step: number;
  /** The newest checkpoint, where there is one. */
  readonly checkpoint?: string | undefined;
  /** Why it failed. */
  readonly reason?: string | undefined;
}

/** What happens in a run, where its record is kept. All but steps reach whoever listens, however slowly. */
export type RunEvent = StartEvent | StepEvent | EvaluationEvent | CheckpointEvent | EndEvent;
