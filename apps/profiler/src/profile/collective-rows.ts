import type { StepProgram } from "@skein/cost-model";
import { type CollectiveRow, secondsByRank, type WorldStep } from "@skein/report";
import type { Span } from "@skein/tensor-core";
import { slowest } from "./times.ts";

/** One row for each collective of a step, in the order in which they are started. Several of one name are added up. */
export const collectiveRows = (steps: readonly WorldStep[], program: StepProgram): CollectiveRow[] => {
  const first = new Map<string, Span>();
  for (const step of steps)
    for (const { spans } of step)
      for (const span of spans) if (span.track === "collectives" && !first.has(span.name)) first.set(span.name, span);
  const [underWay, waited] = [secondsByRank(steps, "collectives"), secondsByRank(steps, "waiting")];
  const over = (measured: typeof underWay, name: string): readonly (readonly number[])[] =>
    measured.map((ofRank) => ofRank.map((sums) => sums.get(name)?.seconds ?? 0));
  const order = program.flatMap(({ kind, name }) => (kind === "start" ? name : []));
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...first]
    .map(([name, { args = {} }]): CollectiveRow => {
      const own = program.filter((step) => step.kind === "start" && step.name === name);
      return {
        name,
        kind: args.operator ?? name,
        axis: args.axis ?? "",
        algorithm: args.algorithm,
        bytes: args.bytes ?? 0,
        seconds: slowest(over(underWay, name)),
        exposedSeconds: slowest(over(waited, `wait ${name}`)),
        ...(own.length > 0 && {
          predictedSeconds: own.reduce((sum, step) => sum + (step.kind === "start" ? step.price.seconds : 0), 0),
        }),
      };
    })
    .sort((a, b) => place(a.name) - place(b.name));
};
