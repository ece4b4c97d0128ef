import type { ControllerMessage } from "../members/control-messages.ts";

/** Inputs of the agreement on a stop. */
export interface StopRoundInput {
  /** Number of processes of the run. */
  readonly processes: number;
  /** First step after which the run may stop. */
  readonly minStep: number;
  readonly tell: (message: ControllerMessage) => void;
}

/**
 * Agreement of a run's processes on the last step, kept by the controller: all processes are asked to start no further
 * step, each reports the step that its ranks have started, and the maximum becomes the last step. A run has one round,
 * however many processes request it and however often: in a second round other steps would have been started, and ranks
 * that have stopped could be asked to continue.
 */
export class StopRound {
  private readonly input: StopRoundInput;
  private readonly startedSteps = new Map<number, number>();
  private wasRequested = false;

  constructor(input: StopRoundInput) {
    this.input = input;
  }

  /** Starts the round, unless it was started before. */
  request(): void {
    if (this.wasRequested) return;
    this.wasRequested = true;
    this.input.tell({ type: "stop" });
  }

  /** Handles the answer of a process; only its first answer counts. */
  answer(process: number, step: number): void {
    if (this.startedSteps.has(process)) return;
    this.startedSteps.set(process, step);
    if (this.startedSteps.size < this.input.processes) return;
    this.input.tell({ type: "stop-at", step: Math.max(this.input.minStep, ...this.startedSteps.values()) });
  }
}
