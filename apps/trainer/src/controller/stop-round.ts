import type { ControllerMessage } from "../members/control-messages.ts";

/** What a stop is agreed upon among. */
export interface StopRoundInput {
  /** Processes of the run. */
  readonly processes: number;
  /** The least step after which the run may stop. */
  readonly leastStep: number;
  readonly tell: (message: ControllerMessage) => void;
}

/**
 * The agreement of a run's processes on its last step, kept by the controller: all are told to begin no further step,
 * each says which one its ranks have begun, and the greatest becomes the last. There is one round in a run, however
 * many processes ask for it and however often: a second would find other steps begun, and could tell ranks that have
 * stopped to go on.
 */
export class StopRound {
  private readonly input: StopRoundInput;
  private readonly begun = new Map<number, number>();
  private asked = false;

  constructor(input: StopRoundInput) {
    this.input = input;
  }

  /** Begin the round, unless it has begun. */
  request(): void {
    if (this.asked) return;
    this.asked = true;
    this.input.tell({ type: "stop" });
  }

  /** Take what a process says. Its first answer stands. */
  answer(process: number, step: number): void {
    if (this.begun.has(process)) return;
    this.begun.set(process, step);
    if (this.begun.size < this.input.processes) return;
    this.input.tell({ type: "stop-at", step: Math.max(this.input.leastStep, ...this.begun.values()) });
  }
}
