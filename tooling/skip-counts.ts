import type { Check } from "./check.ts";

const reasonOf = ({ name, detail }: Check): string | undefined => /\(skipped: (.*)\)/.exec(name)?.[1] ?? detail;

/**
 * Formats one line per file or tool with skipped checks: the number of skipped checks, and a reason if a check has one.
 * Skips in the same file have the same cause, such as missing hardware, or are tests that only the full run includes.
 */
export const skipCounts = (checks: readonly Check[]): string[] => {
  const byFile = Map.groupBy(
    checks.filter(({ status }) => status === "skipped"),
    ({ name }) => name.split(": ")[0]!,
  );
  return [...byFile].map(([file, skipped]) => {
    const reason = skipped.map(reasonOf).find((text) => text !== undefined);
    return `skipped: ${skipped.length} in ${file}${reason === undefined ? "" : ` (${reason})`}`;
  });
};
