import { DataError } from "../errors.ts";
import { pathOf } from "./byte-source.ts";
import type { ParsedLine } from "./json-lines.ts";

/** A line or row with its location for errors. Contains either the text, or `fault`: the error and a suggested fix. */
export interface TextEntry {
  readonly location: string;
  readonly text?: string | Uint8Array;
  readonly fault?: string;
}

/**
 * Returns the text entry for a value. If the value is neither a string nor bytes, `fault` contains an error message
 * instead of a text.
 *
 * @param noun Word for the entry in the error message: line or row.
 */
const entryOf = (location: string, value: unknown, noun: string, field: string): TextEntry =>
  typeof value === "string" || value instanceof Uint8Array
    ? { location, text: value }
    : { location, fault: `the ${noun} has a ${field} that is not a string; correct it, set field` };

/** Returns the text entry for a JSON line. @param field Key of the text. */
export const lineEntry = (location: string, { value, fault }: ParsedLine, field: string): TextEntry => {
  if (value === undefined) return { location, fault: `the line ${fault!}; correct it` };
  if (Object.hasOwn(value, field)) return entryOf(location, value[field], "line", field);
  const keys = Object.keys(value).slice(0, 5).join(", ") || "none";
  return { location, fault: `the line has no key ${field}, its keys: ${keys}; correct it, set field` };
};

/**
 * Returns the text entry for a Parquet row.
 *
 * @param path Path or URL of the file.
 * @param field Column of the text.
 */
export const rowEntry = (path: string, row: number, value: unknown, field: string): TextEntry => {
  const location = `${pathOf(path)}, row ${row}`;
  return value === null || value === undefined
    ? { location, fault: `the row has no ${field}; correct it` }
    : entryOf(location, value, "row", field);
};

export const damagedText = (location: string, fault: string): DataError =>
  new DataError(`${location}: ${fault}, or skip such entries with skipDamaged: true`);
