import { readTextFile } from "@skein/collectives/files";

/** Deepest nesting of objects and lists in a file that lies beside metrics. */
const mostDepth = 64;
/** Most values in it, objects and lists counted. */
const mostValues = 200_000;
/** What lies beside metrics is small; larger is none of it. */
export const mostFileBytes: number = 2 ** 22;

/** @throws Error in a few words where a value is too deep or too large to be shown. */
export const requireBounded = (whole: unknown): void => {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: whole, depth: 0 }];
  let count = 0;
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { value, depth } = one;
    if (typeof value !== "object" || value === null) continue;
    if (depth >= mostDepth) throw new Error(`its values are nested deeper than ${mostDepth}`);
    for (const inner of Object.values(value)) {
      if (++count > mostValues) throw new Error(`it has more than ${mostValues} values`);
      open.push({ value: inner, depth: depth + 1 });
    }
  }
};

/**
 * A JSON file in the folder of a run, which others may have put there: a regular file of bounded size, depth and number
 * of values.
 *
 * @throws the system's error, or an Error that says in a few words what is wrong.
 */
export const readJsonFile = (path: string): unknown => {
  const { text } = readTextFile(path, mostFileBytes, false);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("it is no JSON");
  }
  requireBounded(value);
  return value;
};
