import { isUtf8 } from "node:buffer";
import { extname } from "node:path";
import { type FileContent, utf8Fault } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { pathOf } from "./byte-source.ts";
import { someOf } from "./files-below.ts";

/** How a file holds texts: one on each line, one in each row, or one in the whole file. */
export type TextFormat = "lines" | "rows" | "text";

/** Endings of files with a text on each line, as JSON. */
export const lineEndings: readonly string[] = [".jsonl", ".ndjson", ".json"];

const extensionOf = (place: string): string => extname(pathOf(place).replace(/\.gz$/i, "")).toLowerCase();

/** The format that the extension of a file names; a final `.gz` does not count. */
export const formatOf = (place: string): TextFormat => {
  const extension = extensionOf(place);
  if (lineEndings.includes(extension)) return "lines";
  return extension === ".parquet" ? "rows" : "text";
};

/** What a file of texts must hold, unpacked. */
export const contentOf = (place: string): FileContent => {
  const format = formatOf(place);
  if (format !== "text") return format === "lines" ? "json" : "parquet";
  return [".html", ".htm", ".xhtml"].includes(extensionOf(place)) ? "html" : "text";
};

/**
 * @param begin of the bytes in their file.
 * @throws DataError for bytes that are not UTF-8, with the place of the first.
 */
export const requireUtf8 = (name: string, bytes: Uint8Array, begin = 0): void => {
  if (isUtf8(bytes)) return;
  const at = utf8Fault(bytes)!;
  throw new DataError(
    `${name} is not UTF-8: byte ${begin + at} is 0x${bytes[at]!.toString(16).padStart(2, "0")}, which begins no character there; write the file again as UTF-8, for example with iconv -t UTF-8`,
  );
};

/** Whether a file has fields, of which one is the text. */
export const hasFields = (file: string): boolean => formatOf(file) !== "text";

/** @throws DataError for a `field`, if none of the files has fields. */
export const requireFields = (files: readonly string[], field: string | undefined): void => {
  if (field === undefined || files.length === 0 || files.some(hasFields)) return;
  throw new DataError(
    `${someOf(files.map(pathOf))} ${files.length === 1 ? "is" : "are"} text without fields, but field is ${JSON.stringify(field)}; leave field out, or name a file of JSON lines (${lineEndings.join(", ")}) or of Parquet (.parquet)`,
  );
};
