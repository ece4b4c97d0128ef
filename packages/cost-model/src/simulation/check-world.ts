import { ArgumentError } from "@skein/tensor-core";
import type { CollectiveTask, Program, SimulatedWorld, SimulatedTask } from "./task.ts";

const labelOf = (task: SimulatedTask, index: number): string =>
  `task ${index}${task.kind === "wait" ? "" : ` ("${task.name}")`}`;

const checkSeconds = (rank: number, label: string, figures: { readonly [name: string]: number }): void => {
  for (const [name, value] of Object.entries(figures))
    if (!(value >= 0 && Number.isFinite(value)))
      throw new ArgumentError(
        `rank ${rank}, ${label}: ${name} is ${value}, but must be finite and not negative; correct ${name}`,
      );
};

/**
 * Checks that tasks depend only on earlier tasks, and that a wait precedes every use of a collective's result. @throws
 * ArgumentError if a dependency violates these rules.
 */
const checkProgram = (program: Program, rank: number): void => {
  const waited = new Set(program.flatMap((task) => (task.kind === "wait" && task.previous !== true ? [task.for] : [])));
  const [waitedSoFar, waitedPrevious] = [new Set<number>(), new Set<number>()];
  for (const [index, task] of program.entries()) {
    const label = labelOf(task, index);
    const { after = [], afterPrevious = [] } = task;
    for (const need of after)
      if (!(Number.isInteger(need) && need >= 0 && need < index))
        throw new ArgumentError(
          `rank ${rank}, ${label} needs task ${need}, but a task can only need earlier tasks; use tasks 0 to ${index - 1}`,
        );
    for (const need of afterPrevious)
      if (program[need] === undefined)
        throw new ArgumentError(
          `rank ${rank}, ${label} needs task ${need} of the previous step, which does not exist; use tasks 0 to ${program.length - 1}`,
        );
    if (task.kind === "wait") {
      const isEarlier = task.previous === true || task.for < index;
      if (program[task.for]?.kind !== "collective" || !isEarlier)
        throw new ArgumentError(
          `rank ${rank}, ${label} waits for task ${task.for}, which is not an earlier collective; use the index of a collective's start`,
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
          `rank ${rank}, ${label} needs collective ${unwaited}, but no earlier task waits for it; add a wait task before`,
        );
    }
    if (task.kind === "compute") checkSeconds(rank, label, { seconds: task.seconds });
    if (task.kind === "collective") {
      const { priority = 0 } = task;
      if (!(Number.isSafeInteger(priority) && priority >= 0))
        throw new ArgumentError(
          `rank ${rank}, ${label}: priority is ${priority}, but must be a whole number from 0; correct the priority`,
        );
      checkSeconds(rank, label, { bytes: task.bytes, startSeconds: task.startSeconds ?? 0 });
      for (const { startupSeconds, transferSeconds } of task.phases)
        checkSeconds(rank, label, { startupSeconds, transferSeconds });
    }
  }
};

const checkParts = (name: string, parts: readonly (readonly number[])[], numRanks: number): Set<number> => {
  const ranks = new Set<number>();
  for (const part of parts) {
    if (part.length === 0) throw new ArgumentError(`${name} include an empty group; leave the group out`);
    for (const rank of part) {
      if (!(Number.isInteger(rank) && rank >= 0 && rank < numRanks))
        throw new ArgumentError(
          `${name} contain rank ${rank}, but the world has one rank per program; use ranks 0 to ${numRanks - 1}`,
        );
      if (ranks.has(rank)) throw new ArgumentError(`${name} contain rank ${rank} twice; put each rank into one group`);
      ranks.add(rank);
    }
  }
  return ranks;
};

/** Describes the properties of a collective that must be equal on all members. */
const describeCollective = ({ collective, bytes, phases, priority = 0 }: CollectiveTask): string =>
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
        `rank ${less} never starts collective ${count + 1} of its group along axis "${axis}", "${missing.name}" (${missing.collective}), which rank ${more} starts; all members must start the same collectives`,
      );
    }
    const at = theirs.findIndex((task, i) => describeCollective(task) !== describeCollective(own[i]!));
    if (at !== -1)
      throw new ArgumentError(
        `collective ${at + 1} of a group along axis "${axis}" is ${describeCollective(own[at]!)} on rank ${first}, but ${describeCollective(theirs[at]!)} on rank ${rank}; all members must start the same collectives in the same order`,
      );
  }
};

/**
 * Checks that the ranks, groups and hosts of a world can be simulated. Cost: O(tasks of distinct program objects +
 * ranks).
 *
 * @throws ArgumentError if a value is invalid, a task depends on a later task, or collectives differ between the
 * members of a group.
 */
export const checkWorld = ({ programs, groups, hosts }: SimulatedWorld): void => {
  if (programs.length === 0) throw new ArgumentError("the world has 0 programs, but needs one per rank; add programs");
  const firstRankOf = new Map<Program, number>();
  for (const [rank, program] of programs.entries()) if (!firstRankOf.has(program)) firstRankOf.set(program, rank);
  for (const [program, rank] of firstRankOf) checkProgram(program, rank);
  if (hosts !== undefined) {
    const assigned = checkParts("hosts", hosts, programs.length);
    const missing = programs.findIndex((_, rank) => !assigned.has(rank));
    if (missing !== -1) throw new ArgumentError(`hosts do not contain rank ${missing}; put every rank on a host`);
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
  const assigned = new Map(
    Object.entries(groups).map(([axis, parts]) => [
      axis,
      checkParts(`groups of axis "${axis}"`, parts, programs.length),
    ]),
  );
  for (const [rank, program] of programs.entries())
    for (const [axis, [task]] of collectivesByProgram.get(program)!)
      if (assigned.get(axis)?.has(rank) !== true)
        throw new ArgumentError(
          `rank ${rank} starts "${task!.name}" along axis "${axis}", but is in no group of this axis; axes: ${Object.keys(groups).join(", ") || "none"}`,
        );
  for (const [axis, parts] of Object.entries(groups))
    for (const group of parts)
      checkGroup(axis, group, (rank) => collectivesByProgram.get(programs[rank]!)!.get(axis) ?? none);
};
