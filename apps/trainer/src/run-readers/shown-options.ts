import { optionText } from "./flat-job.ts";
import { leafValues } from "./leaf-values.ts";

/** Maximum number of displayed options of a job, and of characters of a path and of a value. */
const maxOptions = 1000;
const [maxPath, maxValue] = [200, 500];
/** Maximum number of characters of all options, which are sent to each page whenever the run has changed. */
const maxCharacters = 2 ** 16;

/**
 * Options of a job for a list of runs: long values are truncated, and options beyond the limits are skipped.
 *
 * @returns the options, and the total number of options.
 */
export const shownOptions = (
  job: unknown,
): { readonly options: Readonly<Record<string, string>>; readonly count: number } => {
  const all = leafValues(job).filter(({ path }) => path !== "");
  const shown: [string, string][] = [];
  let characters = 0;
  for (const leaf of all) {
    if (leaf.path.length > maxPath) continue;
    const text = optionText(leaf);
    const short = text.length <= maxValue ? text : `${text.slice(0, maxValue)}…`;
    characters += leaf.path.length + short.length;
    if (shown.length === maxOptions || characters > maxCharacters) break;
    shown.push([leaf.path, short]);
  }
  return { options: Object.fromEntries(shown), count: all.length };
};
