import type { RankSpans, Span } from "@skein/tensor-core";
import type { Program } from "./task.ts";
import type { WorldRun } from "./world-run.ts";

const spansOf = (program: Program, rankClass: number, run: WorldRun, steps: number): Span[] => {
  const { times } = run.ranks[rankClass]!;
  const flowOf = program
    .map((task, index) => (task.kind === "collective" ? index : -1))
    .filter((index) => index !== -1);
  const flowNumber = new Map(flowOf.map((index, number) => [index, number]));
  const spans: Span[] = [];
  for (let step = 0; step < steps; step++)
    for (const [index, task] of program.entries()) {
      const offset = 2 * (step * program.length + index);
      const [startSeconds, endSeconds] = [times![offset]!, times![offset + 1]!];
      const flow = (of: number, inStep: number): number => inStep * flowOf.length + flowNumber.get(of)!;
      if (task.kind === "compute") {
        const { name, args } = task;
        spans.push({ name, track: "compute", startSeconds, endSeconds, ...(args && { args }) });
      } else if (task.kind === "collective") {
        const { name, args } = task;
        const id = flow(index, step);
        const spanArgs = args && { args };
        spans.push(
          { name: `start ${name}`, track: "host", startSeconds, endSeconds, ...spanArgs, flow: { id, part: "begin" } },
          {
            name,
            track: "collectives",
            startSeconds: endSeconds,
            endSeconds: run.findInstance(rankClass, step, index).endSeconds!,
            ...spanArgs,
            flow: { id, part: "through" },
          },
        );
      } else {
        const collectiveStep = task.previous === true ? step - 1 : step;
        const started = program[task.for];
        if (collectiveStep < 0 || started?.kind !== "collective") continue;
        const { name, args } = started;
        const waitFlow = { id: flow(task.for, collectiveStep), part: "end" } as const;
        spans.push({
          name: `wait ${name}`,
          track: "waiting",
          startSeconds,
          endSeconds,
          ...(args && { args }),
          flow: waitFlow,
        });
      }
    }
  return spans;
};

/**
 * Builds each rank's spans from the times of its class and the names in its own program, in program order. Cost:
 * O(tasks of distinct programs).
 */
export const spansOfRank = (
  programs: readonly Program[],
  classOf: readonly number[],
  run: WorldRun,
  steps: number,
): RankSpans[] => {
  const known = new Map<Program, Map<number, Span[]>>();
  return programs.map((program, rank) => {
    const spansByClass = known.get(program) ?? new Map<number, Span[]>();
    known.set(program, spansByClass);
    const spans = spansByClass.get(classOf[rank]!) ?? spansOf(program, classOf[rank]!, run, steps);
    spansByClass.set(classOf[rank]!, spans);
    return { rank, spans };
  });
};
