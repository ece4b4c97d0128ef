import { readTextFile } from "@skein/collectives/node";

/**
 * Maximum nesting depth of JSON that is read. Files written by Skein have fewer than ten levels. Module options may
 * have more levels, up to the limit of the YAML parser.
 */
const maxDepth = 1000;

/** Maximum size of the small JSON files of a run folder, in bytes. */
export const maxFactsBytes: number = 16 * 2 ** 20;

/** Whether brackets outside of strings are nested deeper than `maxDepth`. Cost: one pass over the text. */
const isTooDeep = (text: string): boolean => {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "[" || character === "{") depth++;
    else if (character === "]" || character === "}") depth--;
    else if (character === '"') at = endOfString(text, at);
    if (depth > maxDepth) return true;
  }
  return false;
};

/**
 * Returns the index of the quote that ends the string beginning at `start`; the length of the text if the string does
 * not end.
 */
const endOfString = (text: string, start: number): number => {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return text.length;
};

/**
 * Parses JSON that a program of Skein wrote and that another user may have changed. The nesting depth is limited,
 * because `JSON.stringify` and recursive functions would overflow the stack on deeper values.
 *
 * @throws Error whose message completes "cannot be read (…)".
 */
export const parseBoundedJson = (text: string): unknown => {
  if (isTooDeep(text)) throw new Error(`its values are nested deeper than ${maxDepth} levels`);
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new Error("it is not valid JSON", { cause });
  }
};

/**
 * Reads a JSON file of a run folder. The file must be a regular file of bounded size and depth.
 *
 * @throws Error whose message completes "cannot be read (…)".
 */
export const readBoundedJson = (path: string, maxBytes: number = maxFactsBytes): unknown =>
  parseBoundedJson(readTextFile(path, maxBytes).text);
