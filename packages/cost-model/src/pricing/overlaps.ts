import type { StepProgram } from "./step-program.ts";

/** A collective that is in progress while kernels run. */
export interface Overlap {
  /** Index of the collective's start in the program. */
  readonly start: number;
  readonly wait: number;
  /** Seconds of the kernels between start and wait. */
  readonly computedSeconds: number;
  /** Number of bytes sent by the rank that sends the most bytes. */
  readonly sentBytes: number;
}

/**
 * Returns the collectives of a step with kernels between their start and their wait. Only these collectives and the
 * computation slow each other down. Cost: O(steps).
 */
export const overlapsOf = (program: StepProgram): Overlap[] => {
  let computed = 0;
  const before = program.map((step) => (step.kind === "kernel" ? (computed += step.price.seconds) : computed));
  return program.flatMap((step, wait): Overlap[] => {
    const started = step.kind === "wait" ? program[step.start] : undefined;
    if (step.kind !== "wait" || started?.kind !== "start") return [];
    const computedSeconds = before[wait]! - before[step.start]!;
    return computedSeconds > 0
      ? [{ start: step.start, wait, computedSeconds, sentBytes: started.price.sentBytes }]
      : [];
  });
};

/** Whether each step is a kernel that runs during a collective, by step. Cost: O(steps). */
export const kernelsDuringCollectives = (program: StepProgram): readonly boolean[] => {
  const changes = new Int32Array(program.length + 1);
  for (const { start, wait } of overlapsOf(program)) {
    changes[start]! += 1;
    changes[wait]! -= 1;
  }
  let numActive = 0;
  return program.map((step, index) => {
    numActive += changes[index]!;
    return step.kind === "kernel" && numActive > 0;
  });
};
