import { isUtf8 } from "node:buffer";
import { extname } from "node:path";
import { type FileContent, utf8Fault } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { pathOf } from "./byte-source.ts";
import { someOf } from "./files-below.ts";

/** Format of a file with texts: one text per line, one text per row, or one text as the complete file. */
export type TextFormat = "lines" | "rows" | "text";

/** File name extensions of JSON Lines files. */
export const lineEndings: readonly string[] = [".jsonl", ".ndjson", ".json"];

const extensionOf = (location: string): string => extname(pathOf(location).replace(/\.gz$/i, "")).toLowerCase();

/** Returns the format indicated by the extension of a file; a final `.gz` is ignored. */
export const formatOf = (location: string): TextFormat => {
  const extension = extensionOf(location);
  if (lineEndings.includes(extension)) return "lines";
  return extension === ".parquet" ? "rows" : "text";
};

/** Returns the expected content of a text file, after decompression. */
export const contentOf = (location: string): FileContent => {
  const format = formatOf(location);
  if (format !== "text") return format === "lines" ? "json" : "parquet";
  return [".html", ".htm", ".xhtml"].includes(extensionOf(location)) ? "html" : "text";
};

/**
 * Checks that bytes are valid UTF-8.
 *
 * @param begin Offset of the bytes in their file.
 * @throws DataError with the offset of the first invalid byte.
 */
export const requireUtf8 = (name: string, bytes: Uint8Array, begin = 0): void => {
  if (isUtf8(bytes)) return;
  const at = utf8Fault(bytes)!;
  throw new DataError(
    `${name} is not UTF-8: byte ${begin + at} is 0x${bytes[at]!.toString(16).padStart(2, "0")}, which does not start a character there; save the file as UTF-8, for example with iconv -t UTF-8`,
  );
};

/** Whether a file consists of lines or rows with several fields, one of which is the text. */
export const hasFields = (file: string): boolean => formatOf(file) !== "text";

/** Checks that `field` applies to a file. @throws DataError if `field` is given and none of the files has fields. */
export const requireFields = (files: readonly string[], field: string | undefined): void => {
  if (field === undefined || files.length === 0 || files.some(hasFields)) return;
  throw new DataError(
    `${someOf(files.map(pathOf))} ${files.length === 1 ? "is" : "are"} text without fields, but field is ${JSON.stringify(field)}; omit field, or give a JSON Lines (${lineEndings.join(", ")}) or Parquet (.parquet) file`,
  );
};
