import type { StepProgram } from "./step-program.ts";

/** A collective that travels while something is computed. */
export interface Overlap {
  /** Places of its start and its wait in the program. */
  readonly start: number;
  readonly wait: number;
  /** What the kernels between them take. */
  readonly computedSeconds: number;
  /** By the rank that sends most. */
  readonly sentBytes: number;
}

/**
 * The collectives of a step that have kernels between their start and their wait: only these and computation can
 * disturb each other. Cost: O(steps).
 */
export const overlapsOf = (program: StepProgram): Overlap[] => {
  let computed = 0;
  const before = program.map((step) => (step.kind === "kernel" ? (computed += step.price.seconds) : computed));
  return program.flatMap((step, wait): Overlap[] => {
    const begun = step.kind === "wait" ? program[step.start] : undefined;
    if (step.kind !== "wait" || begun?.kind !== "start") return [];
    const computedSeconds = before[wait]! - before[step.start]!;
    return computedSeconds > 0 ? [{ start: step.start, wait, computedSeconds, sentBytes: begun.price.sentBytes }] : [];
  });
};

/**
 * Whether a collective travels beside the kernel at each place of a step; false for what is no kernel. Cost: O(steps).
 */
export const besideCollectives = (program: StepProgram): readonly boolean[] => {
  const changes = new Int32Array(program.length + 1);
  for (const { start, wait } of overlapsOf(program)) {
    changes[start]! += 1;
    changes[wait]! -= 1;
  }
  let underWay = 0;
  return program.map((step, place) => {
    underWay += changes[place]!;
    return step.kind === "kernel" && underWay > 0;
  });
};
