import { alignClocks, printable, type ReadTrace, traceError, type WorldStep, worldSteps } from "@skein/report";

/** Steps of a trace that all ranks have made to their end. @throws ArgumentError where there is none. */
export const traceSteps = ({ ranks, events, cut }: ReadTrace, path: string): readonly WorldStep[] => {
  const steps = worldSteps(alignClocks(ranks));
  if (steps.length > 0) return steps;
  throw traceError(
    path,
    cut === undefined
      ? "holds no step that all its ranks have made"
      : `was cut off before the end of its first step, after ${events} events`,
  );
};

/** What is told of a trace that was cut off. */
export const cutLine = ({ events, cut }: ReadTrace, steps: readonly WorldStep[], path: string): string | undefined => {
  if (cut === undefined) return undefined;
  const { reachedSeconds, begunSteps } = cut;
  const begun = begunSteps.length === 0 ? "" : `; ${printable(begunSteps.join(", "))} had begun and is left out`;
  return `${path} was cut off: ${events} events were read, up to ${reachedSeconds.toFixed(3)} s; ${steps.length} ${steps.length === 1 ? "step is" : "steps are"} whole${begun}`;
};
