import type { ControllerMessage } from "../members/control-messages.ts";

/** Inputs of `StopRound`. */
export interface StopRoundInput {
  /** Number of processes of the run. */
  readonly processes: number;
  /** First step after which the run may stop. */
  readonly minStep: number;
  readonly tell: (message: ControllerMessage) => void;
}

/**
 * Makes the processes of a run agree on the last step. The controller asks all processes to start no further step. Each
 * process reports the step that its ranks have started, and the maximum becomes the last step. A run has a single
 * round, even if a stop is requested several times. A second round could choose a later last step, after some ranks
 * have already stopped.
 */
export class StopRound {
  private readonly input: StopRoundInput;
  private readonly startedSteps = new Map<number, number>();
  private wasRequested = false;

  constructor(input: StopRoundInput) {
    this.input = input;
  }

  /** Starts the round. Does nothing if the round was already started. */
  request(): void {
    if (this.wasRequested) return;
    this.wasRequested = true;
    this.input.tell({ type: "stop" });
  }

  /**
   * Records the last started step of a process. When all processes have responded, sends the last step of the run.
   * Later responses of the same process are ignored.
   */
  answer(process: number, step: number): void {
    if (this.startedSteps.has(process)) return;
    this.startedSteps.set(process, step);
    if (this.startedSteps.size < this.input.processes) return;
    this.input.tell({ type: "stop-at", step: Math.max(this.input.minStep, ...this.startedSteps.values()) });
  }
}
