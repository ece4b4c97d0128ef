import type { Outcome } from "./outcome.ts";
import type { Run } from "./run.ts";

type OutcomeOf<Planned> = (run: Planned) => Outcome | undefined;

/** Returns a line for each run that ended without success. */
export const unsuccessfulRuns = <Planned extends Run>(
  runs: readonly Planned[],
  outcomeOf: OutcomeOf<Planned>,
): readonly string[] =>
  runs.flatMap((run) => {
    const outcome = outcomeOf(run);
    return outcome === undefined || outcome.kind === "done"
      ? []
      : [`- ${run.name}: ${outcome.kind}: ${outcome.reason}.`];
  });

/**
 * Formats the page's section on shortfalls, such as missed targets: the given lines, and the number of runs without a
 * result.
 */
export const shortfallsSection = <Planned extends Run>(
  lines: readonly string[],
  runs: readonly Planned[],
  outcomeOf: OutcomeOf<Planned>,
): string => {
  const numMissing = runs.filter((run) => outcomeOf(run) === undefined).length;
  return `## What fell short

${lines.join("\n") || "Nothing that was run."}
${numMissing === 0 ? "" : `\nNot run: ${numMissing} of ${runs.length}.\n`}`;
};
