import type { CollectivePhase, Program, SimulatedTask } from "./task.ts";

const sameNumbers = (a: readonly number[] = [], b: readonly number[] = []): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i]);

const samePhase = (a: CollectivePhase, b: CollectivePhase | undefined): boolean =>
  a.stream === b?.stream && a.startupSeconds === b.startupSeconds && a.transferSeconds === b.transferSeconds;

const sameTask = (a: SimulatedTask, b: SimulatedTask): boolean => {
  if (!sameNumbers(a.after, b.after) || !sameNumbers(a.afterPrevious, b.afterPrevious)) return false;
  if (a.kind === "compute") return b.kind === "compute" && a.seconds === b.seconds;
  if (a.kind === "wait") return b.kind === "wait" && a.for === b.for && (a.previous ?? false) === (b.previous ?? false);
  return (
    b.kind === "collective" &&
    a.axis === b.axis &&
    (a.priority ?? 0) === (b.priority ?? 0) &&
    (a.startSeconds ?? 0) === (b.startSeconds ?? 0) &&
    a.phases.length === b.phases.length &&
    a.phases.every((phase, i) => samePhase(phase, b.phases[i]))
  );
};

const words = new Float64Array(1);
const halves = new Int32Array(words.buffer);

/** Returns a hash that is equal for programs with the same times. Different programs may have the same hash. */
const hashOf = (program: Program): number => {
  let hash = program.length;
  const mix = (seconds: number): void => {
    words[0] = seconds;
    hash = Math.imul(hash ^ halves[0]!, 0x01000193);
    hash = Math.imul(hash ^ halves[1]!, 0x01000193);
  };
  for (const task of program) {
    if (task.kind === "compute") mix(task.seconds);
    else if (task.kind === "wait") mix(-1 - task.for);
    else for (const { startupSeconds, transferSeconds } of task.phases) mix(startupSeconds + 3 * transferSeconds);
  }
  return hash;
};

/**
 * Numbers programs such that two programs have the same number if and only if their times are equal: the programs are
 * the same object, or their tasks differ only in names and span arguments.
 *
 * Cost: O(tasks of distinct objects), provided that different programs have different hashes.
 */
export const programNumbers = (programs: readonly Program[]): readonly number[] => {
  const numberByObject = new Map<Program, number>();
  const byHash = new Map<number, { readonly program: Program; readonly number: number }[]>();
  let count = 0;
  return programs.map((program) => {
    const known = numberByObject.get(program);
    if (known !== undefined) return known;
    const hash = hashOf(program);
    const candidates = byHash.get(hash) ?? [];
    byHash.set(hash, candidates);
    let same = candidates.find(
      (other) =>
        other.program.length === program.length && program.every((task, i) => sameTask(task, other.program[i]!)),
    );
    if (same === undefined) candidates.push((same = { program, number: count++ }));
    numberByObject.set(program, same.number);
    return same.number;
  });
};
