import { alignClocks, printable, type ReadTrace, traceError, type WorldStep, worldSteps } from "@skein/report";

/**
 * Returns the steps of a trace that all ranks have completed.
 * @throws ArgumentError if no step is complete.
 */
export const traceSteps = ({ ranks, events, cut }: ReadTrace, path: string): readonly WorldStep[] => {
  const steps = worldSteps(alignClocks(ranks));
  if (steps.length > 0) return steps;
  throw traceError(
    path,
    cut === undefined
      ? "has no step that all its ranks completed"
      : `was cut off before the end of its first step, after ${events} events`,
  );
};

/** Returns a message about a trace whose end is missing; undefined for a complete trace. */
export const cutLine = ({ events, cut }: ReadTrace, steps: readonly WorldStep[], path: string): string | undefined => {
  if (cut === undefined) return undefined;
  const { reachedSeconds, incompleteSteps } = cut;
  const incomplete =
    incompleteSteps.length === 0 ? "" : `; ${printable(incompleteSteps.join(", "))} had started and is left out`;
  return `${path} was cut off: ${events} events were read, up to ${reachedSeconds.toFixed(3)} s; ${steps.length} ${steps.length === 1 ? "step is" : "steps are"} complete${incomplete}`;
};
