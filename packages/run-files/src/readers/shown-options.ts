import { optionText } from "./flat-job.ts";
import { leafValues } from "./leaf-values.ts";

/** Maximum number of displayed options per job. */
const maxOptions = 1000;
/** Maximum length, in characters, of an option's path and of its value. */
const [maxPath, maxValue] = [200, 500];
/** Maximum total number of characters of the displayed options, which are sent to each page when the run changes. */
const maxCharacters = 2 ** 16;

/**
 * Returns the options of a job for a list of runs. Long values are truncated, and options beyond the limits are
 * skipped.
 *
 * @returns the displayed options, and the number of all options.
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
