import { ArgumentError } from "@skein/tensor-core";
import type { CollectiveInstance } from "./collective-instance.ts";
import type { WorldRun } from "./world-run.ts";

const nameOf = ({ task, group, step, ordinal }: CollectiveInstance): string =>
  `"${task.name}" (collective ${ordinal + 1} along axis "${group.axis}" of ranks ${group.ranks.slice(0, 8).join(", ")}${group.ranks.length > 8 ? ", …" : ""} in step ${step})`;

/** Finds an earlier collective that blocks a collective. Returns it with an explanation for the error message. */
const blockerOf = (
  run: WorldRun,
  instance: CollectiveInstance,
): { readonly by: CollectiveInstance; readonly why: string } | undefined => {
  const { group, step, ordinal, donePhases } = instance;
  const starts = group.members.map((member) => {
    const { shape } = run.ranks[member]!;
    const collective = shape.along.get(group.axis)![ordinal]!;
    return { member, collective, task: shape.tasks[collective]! };
  });
  for (const { member, task } of starts) {
    const { program, step: atStep, at, rank } = run.ranks[member]!;
    const wait = program[at];
    if ((atStep < step || (atStep === step && at <= task)) && wait?.kind === "wait") {
      const by = run.findInstance(member, wait.previous === true ? atStep - 1 : atStep, wait.for);
      return { by, why: `${nameOf(instance)}, which rank ${rank} has not started because it waits for ` };
    }
    const { after = [], afterPrevious = [] } = program[task]!;
    const needs = [
      ...after.map((need) => [need, step] as const),
      ...afterPrevious.map((need) => [need, step - 1] as const),
    ];
    for (const [need, needStep] of needs) {
      if (needStep < 0 || program[need]!.kind !== "collective") continue;
      const by = run.findInstance(member, needStep, need);
      if (by.endSeconds === undefined) return { by, why: `${nameOf(instance)}, which on rank ${rank} must follow ` };
    }
  }
  for (const { member, collective } of starts) {
    const { shape, rank } = run.ranks[member]!;
    const queue = shape.queueOf[collective]![donePhases];
    if (queue === undefined) continue;
    const entries = shape.queues[queue]!;
    for (let position = 0; ; position++) {
      const { collective: other, phase } = entries[position % entries.length]!;
      const by = run.findInstance(member, Math.floor(position / entries.length), shape.tasks[other]!);
      if (by === instance && phase === donePhases) break;
      if (by.donePhases <= phase) return { by, why: `${nameOf(instance)}, which on rank ${rank} was started after ` };
    }
  }
  // The only remaining cause is the order of collectives in the group.
  const by = run.instances.find(
    (other) => other.group === group && other.endSeconds === undefined && other !== instance,
  );
  return by && { by, why: `${nameOf(instance)}, which in its group must follow ` };
};

/** Creates the one-line error for a deadlock, which lists the cycle of ranks and collectives. */
export const deadlockError = (run: WorldRun): ArgumentError => {
  const path: { readonly instance: CollectiveInstance; readonly why: string }[] = [];
  let instance = run.instances.find(({ endSeconds }) => endSeconds === undefined);
  while (instance !== undefined && !path.some((one) => one.instance === instance)) {
    const blocker = blockerOf(run, instance);
    path.push({ instance, why: blocker?.why ?? nameOf(instance) });
    instance = blocker?.by;
  }
  const cycle = path.slice(path.findIndex((one) => one.instance === instance));
  return new ArgumentError(
    `deadlock, ranks wait for each other in a cycle: ${cycle.map(({ why }) => why).join("")}the first collective of this list; start the collectives of all groups in the same order on all ranks (canonicalOrder)`,
  );
};
