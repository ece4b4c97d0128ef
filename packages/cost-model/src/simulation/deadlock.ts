import { ArgumentError } from "@skein/tensor-core";
import type { Meeting } from "./meeting.ts";
import type { WorldRun } from "./world-run.ts";

const nameOf = ({ task, group, step, ordinal }: Meeting): string =>
  `"${task.name}" (collective ${ordinal + 1} along axis "${group.axis}" of ranks ${group.ranks.slice(0, 8).join(", ")}${group.ranks.length > 8 ? ", …" : ""} in step ${step})`;

/** What holds a collective up: one that is before it, with the words for why. */
const heldUpBy = (run: WorldRun, meeting: Meeting): { readonly by: Meeting; readonly why: string } | undefined => {
  const { group, step, ordinal, donePhases } = meeting;
  const starts = group.members.map((member) => {
    const { shape } = run.ranks[member]!;
    const collective = shape.along.get(group.axis)![ordinal]!;
    return { member, collective, task: shape.tasks[collective]! };
  });
  for (const { member, task } of starts) {
    const { program, step: atStep, at, rank } = run.ranks[member]!;
    const wait = program[at];
    if ((atStep < step || (atStep === step && at <= task)) && wait?.kind === "wait") {
      const by = run.meetingOf(member, wait.previous === true ? atStep - 1 : atStep, wait.for);
      return { by, why: `${nameOf(meeting)}, which rank ${rank} has not started since it waits for ` };
    }
    const { after = [], afterPrevious = [] } = program[task]!;
    const needs = [
      ...after.map((need) => [need, step] as const),
      ...afterPrevious.map((need) => [need, step - 1] as const),
    ];
    for (const [need, ofStep] of needs) {
      if (ofStep < 0 || program[need]!.kind !== "collective") continue;
      const by = run.meetingOf(member, ofStep, need);
      if (by.endSeconds === undefined) return { by, why: `${nameOf(meeting)}, which on rank ${rank} comes after ` };
    }
  }
  for (const { member, collective } of starts) {
    const { shape, rank } = run.ranks[member]!;
    const queue = shape.queueOf[collective]![donePhases];
    if (queue === undefined) continue;
    const entries = shape.queues[queue]!;
    for (let place = 0; ; place++) {
      const { collective: other, phase } = entries[place % entries.length]!;
      const by = run.meetingOf(member, Math.floor(place / entries.length), shape.tasks[other]!);
      if (by === meeting && phase === donePhases) break;
      if (by.donePhases <= phase) return { by, why: `${nameOf(meeting)}, before which rank ${rank} has started ` };
    }
  }
  // The only thing left is its turn in its group.
  const by = run.meetings.find((other) => other.group === group && other.endSeconds === undefined && other !== meeting);
  return by && { by, why: `${nameOf(meeting)}, before which its group has ` };
};

/** Say in one line which ranks and collectives wait for each other in a circle. */
export const deadlockOf = (run: WorldRun): ArgumentError => {
  const path: { readonly meeting: Meeting; readonly why: string }[] = [];
  let meeting = run.meetings.find(({ endSeconds }) => endSeconds === undefined);
  while (meeting !== undefined && !path.some((one) => one.meeting === meeting)) {
    const held = heldUpBy(run, meeting);
    path.push({ meeting, why: held?.why ?? nameOf(meeting) });
    meeting = held?.by;
  }
  const circle = path.slice(path.findIndex((one) => one.meeting === meeting));
  return new ArgumentError(
    `ranks wait for each other in a circle: ${circle.map(({ why }) => why).join("")}the first of these; all ranks must start the collectives of their groups in one order (canonicalOrder)`,
  );
};
