import type { Program } from "./task.ts";

/** A phase of a collective in a queue. */
export interface QueuedPhase {
  /** Index among the program's collectives. */
  readonly collective: number;
  readonly phase: number;
}

/** Indices of a program's collectives and their queues. */
export interface ProgramShape {
  /** Task indices of the collectives. */
  readonly tasks: readonly number[];
  /** Index among the program's collectives, by task; −1 for other tasks. */
  readonly numbers: Int32Array;
  /** Collectives of each axis, as indices among the program's collectives. */
  readonly along: ReadonlyMap<string, readonly number[]>;
  /** Queues of phases: the phases on one stream and lane of the rank, in the order in which the program starts them. */
  readonly queues: readonly (readonly QueuedPhase[])[];
  /** Index of the queue, by collective and phase. */
  readonly queueOf: readonly (readonly number[])[];
}

/** Find the collectives of a program and their queues. Cost: O(tasks). */
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
