import type { Program } from "./task.ts";

/** A queued phase of a collective. */
export interface QueuedPhase {
  /** Index of the collective among the program's collectives. */
  readonly collective: number;
  readonly phase: number;
}

/** A program's collectives, and the queues of their phases. */
export interface ProgramShape {
  /** Task indices of the collectives. */
  readonly tasks: readonly number[];
  /** Index of each task among the program's collectives, by task; −1 for tasks that are not collectives. */
  readonly numbers: Int32Array;
  /** Collectives by axis, as indices among the program's collectives. */
  readonly along: ReadonlyMap<string, readonly number[]>;
  /**
   * Queues of phases. A queue contains the phases on one stream and lane of the rank, in the order in which the program
   * starts them.
   */
  readonly queues: readonly (readonly QueuedPhase[])[];
  /** Queue index of each phase, by collective and phase. */
  readonly queueOf: readonly (readonly number[])[];
}

/** Finds the collectives of a program and their queues. Cost: O(tasks). */
export const programShape = (program: Program): ProgramShape => {
  const tasks: number[] = [];
  const numbers = new Int32Array(program.length).fill(-1);
  const along = new Map<string, number[]>();
  const queues: QueuedPhase[][] = [];
  const queueOf: number[][] = [];
  const queueNumbers = new Map<string, number>();
  for (const [index, task] of program.entries()) {
    if (task.kind !== "collective") continue;
    const collective = tasks.push(index) - 1;
    numbers[index] = collective;
    const { axis, phases, priority = 0 } = task;
    const axisCollectives = along.get(axis);
    if (axisCollectives === undefined) along.set(axis, [collective]);
    else axisCollectives.push(collective);
    queueOf.push(
      phases.map(({ stream }, phase) => {
        const key = `${stream} ${priority}`;
        const number = queueNumbers.get(key) ?? queues.length;
        queueNumbers.set(key, number);
        (queues[number] ??= []).push({ collective, phase });
        return number;
      }),
    );
  }
  return { tasks, numbers, along, queues, queueOf };
};
