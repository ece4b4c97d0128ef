import type { LinkStream, Program } from "./task.ts";

/** A phase of a collective in a queue. */
export interface QueuedPhase {
  readonly task: number;
  readonly axis: string;
  /** Which of its axis's collectives it belongs to. */
  readonly ordinal: number;
  readonly phase: number;
}

/** Where the collectives of a program stand. */
export interface ProgramShape {
  /** Indices of the collectives of each axis. */
  readonly collectivesOf: ReadonlyMap<string, readonly number[]>;
  /** By task: which of its axis's collectives it is; −1 of other tasks. */
  readonly ordinals: Int32Array;
  /** Phases that go over one stream of the rank in one lane, in the order in which the program starts them. */
  readonly queues: readonly (readonly QueuedPhase[])[];
  /** By task and phase: index of its queue. */
  readonly queueOf: readonly (readonly number[])[];
}

/** Find the collectives of a program, and the queues that they stand in. Cost: O(tasks). */
export const programShape = (program: Program): ProgramShape => {
  const collectivesOf = new Map<string, number[]>();
  const ordinals = new Int32Array(program.length).fill(-1);
  const queues: QueuedPhase[][] = [];
  const numbers = new Map<string, number>();
  const queueOf = program.map((task, index): readonly number[] => {
    if (task.kind !== "collective") return [];
    const { axis, phases, priority = 0 } = task;
    const ofAxis = collectivesOf.get(axis) ?? [];
    collectivesOf.set(axis, ofAxis);
    ordinals[index] = ofAxis.length;
    ofAxis.push(index);
    return phases.map(({ stream }: { readonly stream: LinkStream }, phase) => {
      const key = `${stream} ${priority}`;
      const number = numbers.get(key) ?? queues.length;
      numbers.set(key, number);
      (queues[number] ??= []).push({ task: index, axis, ordinal: ordinals[index]!, phase });
      return number;
    });
  });
  return { collectivesOf, ordinals, queues, queueOf };
};
