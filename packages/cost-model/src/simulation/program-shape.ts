import type { Program } from "./task.ts";

/** A phase of a collective in a queue. */
export interface QueuedPhase {
  /** Which of the program's collectives it belongs to. */
  readonly collective: number;
  readonly phase: number;
}

/** Where the collectives of a program stand. */
export interface ProgramShape {
  /** Indices of the collectives' tasks. */
  readonly tasks: readonly number[];
  /** By task: which of the program's collectives it is; −1 of other tasks. */
  readonly numbers: Int32Array;
  /** By axis: its collectives, as numbers among all of the program. */
  readonly along: ReadonlyMap<string, readonly number[]>;
  /** Phases that go over one stream of the rank in one lane, in the order in which the program starts them. */
  readonly queues: readonly (readonly QueuedPhase[])[];
  /** By collective and phase: index of its queue. */
  readonly queueOf: readonly (readonly number[])[];
}

/** Find the collectives of a program, and the queues that they stand in. Cost: O(tasks). */
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
    const ofAxis = along.get(axis);
    if (ofAxis === undefined) along.set(axis, [collective]);
    else ofAxis.push(collective);
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
