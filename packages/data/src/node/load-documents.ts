import { extname } from "node:path";
import { DataError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { isAddress, pathOf } from "./byte-source.ts";
import { filesBelow, isFolder, someOf } from "./files-below.ts";
import { jsonLines } from "./json-lines.ts";
import { parquetColumn } from "./parquet-column.ts";
import { readShared } from "./read-shared.ts";
import { requireMemory } from "./require-memory.ts";
import { textEncoding } from "./text-encoding.ts";
import { contentOf, formatOf, hasFields, requireFields, requireUtf8 } from "./text-format.ts";
import { damagedText, lineEntry, rowEntry, type TextEntry } from "./text-entries.ts";

/** Text files and their conversion to tokens. */
export interface DocumentOptions {
  /**
   * Location of the texts: a text file (UTF-8), a JSON Lines file (`.jsonl`, `.ndjson`, `.json`), a Parquet file
   * (`.parquet`, path or URL), a folder with such files, or a list of locations, which are read in order.
   */
  readonly file: string | readonly string[];
  /**
   * Key of the text in JSON lines, or column of the text in Parquet. Must be absent if `file` contains neither format.
   * Default: text.
   */
  readonly field?: string | undefined;
  /**
   * Text inserted between documents. Default: the tokenizer's end-of-text token, or an empty line if no such token
   * exists.
   */
  readonly separator?: string | undefined;
  /** Whether lines and rows without text are skipped instead of causing an error. */
  readonly skipDamaged?: boolean | undefined;
  /** Tokenizer of the text. Default: each byte of UTF-8 is a token. */
  readonly tokenizer?: Tokenizer | undefined;
}

/** All documents, concatenated in shared memory. */
export interface Documents {
  readonly text: Uint8Array | Int32Array;
  /** Remarks for the user, one line each. */
  readonly remarks: readonly string[];
}

const extensions: ReadonlySet<string> = new Set([".jsonl", ".md", ".ndjson", ".parquet", ".txt"]);
const cure = "give a text, JSON Lines or Parquet file, or a folder with such files";

const extensionOf = (location: string): string => extname(pathOf(location)).toLowerCase();

/** Returns the files at a location. @throws DataError if a folder has no texts. */
const textsAt = (location: string): string[] => {
  if (isAddress(location) && extensionOf(location) !== ".parquet")
    throw new DataError(
      `${pathOf(location)}: only .parquet can be read over HTTP; download the file and give its path`,
    );
  if (isAddress(location) || !isFolder(location)) return [location];
  const texts = filesBelow(location).filter((path) => extensions.has(extensionOf(path)));
  if (texts.length === 0)
    throw new DataError(`${location} holds no texts (${[...extensions].join(", ")}); add texts, or give a file`);
  return texts;
};

/**
 * Whether any of the files, including the files in folders, has named fields, so that one field is the text.
 *
 * @throws DataError if a folder has no texts.
 */
export const haveFields = (file: DocumentOptions["file"]): boolean => [file].flat().flatMap(textsAt).some(hasFields);

/**
 * Returns the files at some locations.
 *
 * @throws DataError if a folder has no texts, if the field name applies to no file, or if `locations` is empty.
 */
const filesAt = (locations: readonly string[], field: string | undefined): string[] => {
  const files = locations.flatMap(textsAt);
  requireFields(files, field);
  const packed = files.find((location) => /\.gz$/i.test(pathOf(location)));
  if (packed !== undefined)
    throw new DataError(
      `${pathOf(packed)} is compressed, which only streams support (data.stream); set stream, or decompress the file`,
    );
  if (files.length === 0) throw new DataError(`data.file lists no files; ${cure}`);
  return files;
};

function* lineEntries(path: string, field: string): Generator<TextEntry, void> {
  for (const { location, ...line } of jsonLines(path, cure)) yield lineEntry(location, line, field);
}

async function* rowEntries(path: string, field: string): AsyncGenerator<TextEntry, void> {
  for await (const [row, value] of parquetColumn(path, field)) yield rowEntry(path, row, value, field);
}

/** Yields the texts of a file as strings or as bytes. Appends the locations of damaged lines and rows to `damaged`. */
async function* documentsOf(
  path: string,
  { field = "text", skipDamaged = false }: DocumentOptions,
  damaged: string[],
): AsyncGenerator<string | Uint8Array, void> {
  const format = formatOf(path);
  if (format === "text") {
    const { bytes } = readShared(path, cure, contentOf(path));
    requireUtf8(path, bytes);
    yield bytes;
    return;
  }
  const entries = format === "lines" ? lineEntries(path, field) : rowEntries(path, field);
  for await (const { location, text, fault } of entries) {
    if (text !== undefined) yield text;
    else if (skipDamaged) damaged.push(location);
    else throw damagedText(location, fault!);
  }
}

/**
 * Yields all documents at the locations in `options.file`, in order, as strings or bytes. A document is a text file, a
 * JSON line or a Parquet row.
 *
 * @param damaged Receives the locations of skipped lines and rows.
 * @throws DataError if a file is unreadable, or if a line is damaged and damaged lines are not skipped.
 */
export async function* eachDocument(
  options: DocumentOptions,
  damaged: string[],
): AsyncGenerator<string | Uint8Array, void> {
  for (const path of filesAt([options.file].flat(), options.field)) yield* documentsOf(path, options, damaged);
}

/** Concatenates texts in shared memory. */
const concatenated = <Text extends Uint8Array | Int32Array>(
  pieces: readonly Text[],
  make: (bytes: SharedArrayBuffer) => Text,
): Text => {
  const bytes = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
  requireMemory(bytes, "the texts", "use fewer or shorter texts");
  const row = make(new SharedArrayBuffer(bytes));
  let at = 0;
  for (const piece of pieces) {
    row.set(piece, at);
    at += piece.length;
  }
  return row;
};

/** A synchronous or asynchronous sequence. */
type Series<Item> = Iterable<Item> | AsyncIterable<Item>;

/** Minimum total length of documents that are encoded together, in characters or bytes. */
const partLength = 2 ** 14;

/**
 * Divides consecutive documents into groups with a total length of at least `partLength`. The last group may be
 * shorter.
 */
async function* partsOf(documents: Series<string | Uint8Array>): AsyncGenerator<(string | Uint8Array)[], void> {
  let part: (string | Uint8Array)[] = [];
  let length = 0;
  for await (const document of documents) {
    part.push(document);
    length += document.length;
    if (length < partLength) continue;
    yield part;
    [part, length] = [[], 0];
  }
  yield part;
}

/** Encodes documents group by group, and inserts a separator between documents. Empty documents are dropped. */
const separated = async <Text extends Uint8Array | Int32Array>(
  documents: Series<string | Uint8Array>,
  changeAll: (documents: readonly (string | Uint8Array)[]) => Text[],
  separator: Text,
): Promise<Text[]> => {
  const pieces: Text[] = [];
  for await (const part of partsOf(documents))
    for (const piece of changeAll(part)) {
      if (piece.length === 0) continue;
      if (pieces.length > 0) pieces.push(separator);
      pieces.push(piece);
    }
  return pieces;
};

/**
 * Concatenates documents in shared memory. Each document is encoded separately, so that no token spans two documents.
 * Empty documents are dropped.
 */
export const joinDocuments = async (
  documents: Series<string | Uint8Array>,
  { separator, tokenizer }: Pick<DocumentOptions, "separator" | "tokenizer">,
): Promise<Uint8Array | Int32Array> => {
  const { encodeAll, separator: between } = textEncoding(separator, tokenizer);
  const pieces = await separated(documents, encodeAll, between);
  if (tokenizer !== undefined) return concatenated(pieces as Int32Array[], (shared) => new Int32Array(shared));
  // a single file is already in shared memory
  const [first, ...others] = pieces as Uint8Array[];
  if (others.length === 0 && first?.buffer instanceof SharedArrayBuffer) return first;
  return concatenated(pieces as Uint8Array[], (shared) => new Uint8Array(shared));
};

/**
 * Loads and concatenates all documents at the locations in `options.file` (see `joinDocuments`). A document is a text
 * file, a JSON line or a Parquet row.
 *
 * @throws DataError if a file is unreadable, or, with file and line number, if a line is damaged and damaged lines are
 * not skipped.
 * @example
 * ```ts
 * import { writeFileSync } from "node:fs";
 * writeFileSync("a.txt", "One.");
 * writeFileSync("b.txt", "Two.");
 * const { text } = await loadDocuments({ file: ["a.txt", "b.txt"], separator: "\n" });
 * console.log(JSON.stringify(new TextDecoder().decode(text as Uint8Array))); // "One.\nTwo."
 * ```
 */
export const loadDocuments = async (options: DocumentOptions): Promise<Documents> => {
  const damaged: string[] = [];
  let count = 0;
  async function* counted(): AsyncGenerator<string | Uint8Array, void> {
    for await (const document of eachDocument(options, damaged)) {
      count++;
      yield document;
    }
  }
  const text = await joinDocuments(counted(), options);
  if (count === 0 && damaged.length > 0)
    throw new DataError(
      `${someOf([options.file].flat())}: none of ${damaged.length} lines or rows holds a text; restore them, or set field to the key of the text`,
    );
  return {
    text,
    remarks: [
      ...(count === 1 ? [] : [`${count} documents`]),
      ...(damaged.length === 0 ? [] : [`${damaged.length} damaged lines or rows were skipped: ${someOf(damaged)}`]),
    ],
  };
};
