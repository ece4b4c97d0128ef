import type { StepProgram } from "@skein/cost-model/pricing";
import { type CollectiveRow, secondsByRank, type WorldStep } from "@skein/report";
import type { Span } from "@skein/tensor-core";
import { slowest } from "./times.ts";

/**
 * Returns a row per collective name of a step, in the order in which collectives start. Collectives with the same name
 * are summed.
 */
export const collectiveRows = (steps: readonly WorldStep[], program: StepProgram): CollectiveRow[] => {
  const first = new Map<string, Span>();
  for (const step of steps)
    for (const { spans } of step)
      for (const span of spans) if (span.track === "collectives" && !first.has(span.name)) first.set(span.name, span);
  const [running, waits] = [secondsByRank(steps, "collectives"), secondsByRank(steps, "waiting")];
  const over = (measured: typeof running, name: string): readonly (readonly number[])[] =>
    measured.map((stepsOfRank) => stepsOfRank.map((sums) => sums.get(name)?.seconds ?? 0));
  const order = program.flatMap(({ kind, name }) => (kind === "start" ? name : []));
  const position = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...first]
    .map(([name, { args = {} }]): CollectiveRow => {
      const own = program.filter((step) => step.kind === "start" && step.name === name);
      return {
        name,
        kind: args.operator ?? name,
        axis: args.axis ?? "",
        algorithm: args.algorithm,
        bytes: args.bytes ?? 0,
        seconds: slowest(over(running, name)),
        exposedSeconds: slowest(over(waits, `wait ${name}`)),
        ...(own.length > 0 && {
          predictedSeconds: own.reduce((sum, step) => sum + (step.kind === "start" ? step.price.seconds : 0), 0),
        }),
      };
    })
    .sort((a, b) => position(a.name) - position(b.name));
};
