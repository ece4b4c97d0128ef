import { ArgumentError } from "@skein/tensor-core";
import type { CollectiveTask, Program, SimulatedWorld, Task } from "./task.ts";

const labelOf = (task: Task, index: number): string =>
  `task ${index}${task.kind === "wait" ? "" : ` ("${task.name}")`}`;

const checkSeconds = (rank: number, label: string, figures: { readonly [name: string]: number }): void => {
  for (const [name, value] of Object.entries(figures))
    if (!(value >= 0 && Number.isFinite(value)))
      throw new ArgumentError(`rank ${rank}, ${label}: ${name} is ${value}; it must be finite and not negative`);
};

/** What a program needs comes before it, and what needs a collective's result stands behind a wait. */
const checkProgram = (program: Program, rank: number): void => {
  const waited = new Set(program.flatMap((task) => (task.kind === "wait" && task.previous !== true ? [task.for] : [])));
  const [waitedSoFar, waitedPrevious] = [new Set<number>(), new Set<number>()];
  for (const [index, task] of program.entries()) {
    const label = labelOf(task, index);
    const { after = [], afterPrevious = [] } = task;
    for (const need of after)
      if (!(Number.isInteger(need) && need >= 0 && need < index))
        throw new ArgumentError(
          `rank ${rank}, ${label} needs task ${need}; a task needs earlier ones only, 0 to ${index - 1}`,
        );
    for (const need of afterPrevious)
      if (program[need] === undefined)
        throw new ArgumentError(
          `rank ${rank}, ${label} needs task ${need} of the step before; a step has tasks 0 to ${program.length - 1}`,
        );
    if (task.kind === "wait") {
      const isEarlier = task.previous === true || task.for < index;
      if (program[task.for]?.kind !== "collective" || !isEarlier)
        throw new ArgumentError(
          `rank ${rank}, ${label} waits for task ${task.for}, which is no collective before it; name its start`,
        );
      (task.previous === true ? waitedPrevious : waitedSoFar).add(task.for);
    }
    if (task.kind !== "collective") {
      const unwaited =
        after.find((need) => program[need]!.kind === "collective" && !waitedSoFar.has(need)) ??
        afterPrevious.find(
          (need) => program[need]!.kind === "collective" && !waited.has(need) && !waitedPrevious.has(need),
        );
      if (unwaited !== undefined)
        throw new ArgumentError(
          `rank ${rank}, ${label} needs collective ${unwaited}, for which nothing waits before; put a wait task there`,
        );
    }
    if (task.kind === "compute") checkSeconds(rank, label, { seconds: task.seconds });
    if (task.kind === "collective") {
      const { priority = 0 } = task;
      if (!(Number.isSafeInteger(priority) && priority >= 0))
        throw new ArgumentError(`rank ${rank}, ${label}: priority is ${priority}; lanes are whole numbers from 0`);
      checkSeconds(rank, label, { bytes: task.bytes, startSeconds: task.startSeconds ?? 0 });
      for (const { startupSeconds, transferSeconds } of task.phases)
        checkSeconds(rank, label, { startupSeconds, transferSeconds });
    }
  }
};

const checkParts = (name: string, parts: readonly (readonly number[])[], numRanks: number): Set<number> => {
  const seen = new Set<number>();
  for (const part of parts) {
    if (part.length === 0) throw new ArgumentError(`${name} have a part without ranks; leave it out`);
    for (const rank of part) {
      if (!(Number.isInteger(rank) && rank >= 0 && rank < numRanks))
        throw new ArgumentError(
          `${name} name rank ${rank}; the world has ranks 0 to ${numRanks - 1}, one for each program`,
        );
      if (seen.has(rank)) throw new ArgumentError(`${name} name rank ${rank} twice; each rank is in one part`);
      seen.add(rank);
    }
  }
  return seen;
};

/** What of a collective must be the same on all members. */
const factsOf = ({ collective, bytes, phases, priority = 0 }: CollectiveTask): string =>
  `${collective} of ${bytes} bytes over [${phases.map(({ stream }) => stream).join(", ")}] with priority ${priority}`;

const checkGroup = (
  axis: string,
  group: readonly number[],
  collectivesOf: (rank: number) => readonly CollectiveTask[],
): void => {
  const [first] = group as [number];
  const own = collectivesOf(first);
  for (const rank of group) {
    const theirs = collectivesOf(rank);
    if (theirs === own) continue;
    if (theirs.length !== own.length) {
      const count = Math.min(theirs.length, own.length);
      const [less, more] = theirs.length < own.length ? [rank, first] : [first, rank];
      const missing = (theirs.length < own.length ? own : theirs)[count]!;
      throw new ArgumentError(
        `rank ${less} never starts collective ${count + 1} of its group along axis "${axis}", "${missing.name}" (${missing.collective}), which rank ${more} starts; all members start the same ones`,
      );
    }
    const at = theirs.findIndex((task, i) => factsOf(task) !== factsOf(own[i]!));
    if (at !== -1)
      throw new ArgumentError(
        `collective ${at + 1} of a group along axis "${axis}" is ${factsOf(own[at]!)} on rank ${first}, but ${factsOf(theirs[at]!)} on rank ${rank}; all members start the same ones in the same order`,
      );
  }
};

/**
 * Check that a world can be simulated. Cost: O(tasks of distinct program objects + ranks).
 *
 * @throws ArgumentError for a figure that is none, a task that needs a later one, or collectives that the members of a
 * group do not have in common.
 */
export const checkWorld = ({ programs, groups, hosts }: SimulatedWorld): void => {
  if (programs.length === 0)
    throw new ArgumentError("a world without ranks was given; it has one program for each rank");
  const firstRankOf = new Map<Program, number>();
  for (const [rank, program] of programs.entries()) if (!firstRankOf.has(program)) firstRankOf.set(program, rank);
  for (const [program, rank] of firstRankOf) checkProgram(program, rank);
  if (hosts !== undefined) {
    const placed = checkParts("hosts", hosts, programs.length);
    const missing = programs.findIndex((_, rank) => !placed.has(rank));
    if (missing !== -1) throw new ArgumentError(`hosts leave out rank ${missing}; every rank is on one`);
  }
  const collectivesByProgram = new Map(
    [...firstRankOf.keys()].map((program) => [
      program,
      Map.groupBy(
        program.filter((task) => task.kind === "collective"),
        ({ axis }) => axis,
      ),
    ]),
  );
  const none: readonly CollectiveTask[] = [];
  const placed = new Map(
    Object.entries(groups).map(([axis, parts]) => [
      axis,
      checkParts(`groups of axis "${axis}"`, parts, programs.length),
    ]),
  );
  for (const [rank, program] of programs.entries())
    for (const [axis, [task]] of collectivesByProgram.get(program)!)
      if (placed.get(axis)?.has(rank) !== true)
        throw new ArgumentError(
          `rank ${rank} starts "${task!.name}" along axis "${axis}", of which it is in no group; axes: ${Object.keys(groups).join(", ") || "none"}`,
        );
  for (const [axis, parts] of Object.entries(groups))
    for (const group of parts)
      checkGroup(axis, group, (rank) => collectivesByProgram.get(programs[rank]!)!.get(axis) ?? none);
};
