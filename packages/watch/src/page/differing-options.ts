import type { RunFacts } from "@skein/run-files/node";

/** Returns the job options in which runs differ, with the value of each run. Undefined: the run has no such option. */
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
