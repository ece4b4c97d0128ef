import { DataError } from "../errors.ts";
import { pathOf } from "./byte-source.ts";
import type { ParsedLine } from "./json-lines.ts";

/** A line or a row, as errors call it, with its text, or what is wrong with it and what to do. */
export interface TextEntry {
  readonly place: string;
  readonly text?: string | Uint8Array;
  readonly fault?: string;
}

/** @param noun what holds the value. */
const entryOf = (place: string, value: unknown, noun: string, field: string): TextEntry =>
  typeof value === "string" || value instanceof Uint8Array
    ? { place, text: value }
    : { place, fault: `the ${noun} has a ${field} that is no string; correct it, set field` };

/** @param field key of the text. */
export const lineEntry = (place: string, { value, fault }: ParsedLine, field: string): TextEntry => {
  if (value === undefined) return { place, fault: `the line ${fault!}; correct it` };
  if (Object.hasOwn(value, field)) return entryOf(place, value[field], "line", field);
  const keys = Object.keys(value).slice(0, 5).join(", ") || "none";
  return { place, fault: `the line has no key ${field}, but ${keys}; correct it, set field` };
};

/** @param path of the file, or its address. @param field column of the text. */
export const rowEntry = (path: string, row: number, value: unknown, field: string): TextEntry => {
  const place = `${pathOf(path)}, row ${row}`;
  return value === null || value === undefined
    ? { place, fault: `the row has no ${field}; correct it` }
    : entryOf(place, value, "row", field);
};

export const damagedText = (place: string, fault: string): DataError =>
  new DataError(`${place}: ${fault}, or leave such out with skipDamaged: true`);
