import type { RunFacts } from "../../run-readers/run-facts.ts";

/** Options of jobs in which runs differ, and each run's value; undefined where a run has no such option. */
export const differingOptions = (
  runs: readonly Pick<RunFacts, "options">[],
): readonly { readonly key: string; readonly values: readonly (string | undefined)[] }[] => {
  const keys = [...new Set(runs.flatMap(({ options }) => Object.keys(options)))].toSorted();
  return keys
    .map((key) => ({
      key,
      values: runs.map(({ options }) => (Object.hasOwn(options, key) ? options[key] : undefined)),
    }))
    .filter(({ values }) => new Set(values).size > 1);
};
