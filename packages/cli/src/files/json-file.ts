import { readTextFile } from "@skein/collectives/files";

/** Maximum nesting depth of objects and lists in a JSON file next to the metrics file. */
const maxDepth = 64;
/** Maximum number of values in a JSON file next to the metrics file, including objects and lists. */
const maxValues = 200_000;
/** Maximum size, in bytes, of a JSON file next to the metrics file. */
export const maxFileBytes: number = 2 ** 22;

/**
 * Requires that a value is small and shallow enough to be displayed.
 * @throws Error with a message of a few words.
 */
export const requireBounded = (whole: unknown): void => {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: whole, depth: 0 }];
  let count = 0;
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { value, depth } = one;
    if (typeof value !== "object" || value === null) continue;
    if (depth >= maxDepth) throw new Error(`its values are nested deeper than ${maxDepth}`);
    for (const inner of Object.values(value)) {
      if (++count > maxValues) throw new Error(`it has more than ${maxValues} values`);
      open.push({ value: inner, depth: depth + 1 });
    }
  }
};

/**
 * Reads a JSON file in the folder of a run, which another user may have written. The file must be a regular file of
 * bounded size, depth and number of values.
 *
 * @throws the system's error, or an Error that describes the problem in a few words.
 */
export const readJsonFile = (path: string): unknown => {
  const { text } = readTextFile(path, maxFileBytes, false);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  requireBounded(value);
  return value;
};
