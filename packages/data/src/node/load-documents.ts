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

/** Which texts there are, and what they become. */
export interface DocumentOptions {
  /**
   * A file of text (UTF-8), one of JSON lines (`.jsonl`, `.ndjson`, `.json`) or of rows (`.parquet`, which may be the
   * address of one), a folder with such files, or several of these, in their order.
   */
  readonly file: string | readonly string[];
  /** Key of the text in JSON lines, column of it in Parquet; refused if `file` has neither. Default: text. */
  readonly field?: string | undefined;
  /** Stands between documents. Default: the token that ends a text, where the tokenizer has one, or an empty line. */
  readonly separator?: string | undefined;
  /** Leave out lines and rows that hold no text, instead of giving up. */
  readonly skipDamaged?: boolean | undefined;
  /** Default: each byte of UTF-8 is a token. */
  readonly tokenizer?: Tokenizer | undefined;
}

/** All documents in a row, in shared memory: bytes, or tokens of a tokenizer. */
export interface Documents {
  readonly text: Uint8Array | Int32Array;
  /** What people should know, a line each. */
  readonly remarks: readonly string[];
}

const extensions: ReadonlySet<string> = new Set([".jsonl", ".md", ".ndjson", ".parquet", ".txt"]);
const cure = "name a file of text, of JSON lines or of Parquet, or a folder with such files";

const extensionOf = (place: string): string => extname(pathOf(place)).toLowerCase();

/** Files that a place names. @throws DataError for a folder without texts. */
const textsAt = (place: string): string[] => {
  if (isAddress(place) && extensionOf(place) !== ".parquet")
    throw new DataError(`${pathOf(place)}: only .parquet is read by its address; download the file, and name it`);
  if (isAddress(place) || !isFolder(place)) return [place];
  const texts = filesBelow(place).filter((path) => extensions.has(extensionOf(path)));
  if (texts.length === 0)
    throw new DataError(`${place} holds no texts (${[...extensions].join(", ")}); put some in, or name a file`);
  return texts;
};

/**
 * Whether any of some files, or of files in folders, has fields, of which one is the text.
 *
 * @throws DataError for a folder without texts.
 */
export const haveFields = (file: DocumentOptions["file"]): boolean => [file].flat().flatMap(textsAt).some(hasFields);

/** @throws DataError for a folder without texts, for a field that no file has, and for no place at all. */
const filesAt = (places: readonly string[], field: string | undefined): string[] => {
  const files = places.flatMap(textsAt);
  requireFields(files, field);
  const packed = files.find((place) => /\.gz$/i.test(pathOf(place)));
  if (packed !== undefined)
    throw new DataError(
      `${pathOf(packed)} is compressed, and read only while training (data.stream); give stream, or unpack the file`,
    );
  if (files.length === 0) throw new DataError(`data.file names no files; ${cure}`);
  return files;
};

function* lineEntries(path: string, field: string): Generator<TextEntry, void> {
  for (const { place, ...line } of jsonLines(path, cure)) yield lineEntry(place, line, field);
}

async function* rowEntries(path: string, field: string): AsyncGenerator<TextEntry, void> {
  for await (const [row, value] of parquetColumn(path, field)) yield rowEntry(path, row, value, field);
}

/** Texts of a file, each a string or its bytes; places of damaged entries go to `damaged`. */
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
  for await (const { place, text, fault } of entries) {
    if (text !== undefined) yield text;
    else if (skipDamaged) damaged.push(place);
    else throw damagedText(place, fault!);
  }
}

/**
 * The texts of files, of lines of JSON, of rows of Parquet, or of folders of these, in their order, each a string or
 * its bytes.
 *
 * @param damaged takes the places of lines and rows that are left out.
 * @throws DataError for files that cannot be read, and for a damaged line unless it is to be skipped.
 */
export async function* eachDocument(
  options: DocumentOptions,
  damaged: string[],
): AsyncGenerator<string | Uint8Array, void> {
  for (const path of filesAt([options.file].flat(), options.field)) yield* documentsOf(path, options, damaged);
}

/** In shared memory, one after the other. */
const inARow = <Text extends Uint8Array | Int32Array>(
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

/** What comes one after the other, now or later. */
type Series<Item> = Iterable<Item> | AsyncIterable<Item>;

/** Characters or bytes of documents that are changed together. */
const partLength = 2 ** 14;

/** Documents in their order, some at a time. */
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

/** Documents with a separator between any two, changed as they come; empty ones are none. */
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
 * Documents one after the other, in shared memory. Each is encoded by itself, so that no token reaches from one into
 * the next. Empty ones are none.
 */
export const joinDocuments = async (
  documents: Series<string | Uint8Array>,
  { separator, tokenizer }: Pick<DocumentOptions, "separator" | "tokenizer">,
): Promise<Uint8Array | Int32Array> => {
  const { encodeAll, separator: between } = textEncoding(separator, tokenizer);
  const pieces = await separated(documents, encodeAll, between);
  if (tokenizer !== undefined) return inARow(pieces as Int32Array[], (shared) => new Int32Array(shared));
  // a lone file lies in shared memory already
  const [first, ...others] = pieces as Uint8Array[];
  if (others.length === 0 && first?.buffer instanceof SharedArrayBuffer) return first;
  return inARow(pieces as Uint8Array[], (shared) => new Uint8Array(shared));
};

/**
 * Texts of files, of lines of JSON, of rows of Parquet, or of folders of these, one after the other (see
 * `joinDocuments`).
 *
 * @throws DataError for files that cannot be read, and for a damaged line, with file and line, unless it is to be
 * skipped.
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
      ...(damaged.length === 0 ? [] : [`${damaged.length} damaged lines or rows were left out: ${someOf(damaged)}`]),
    ],
  };
};
