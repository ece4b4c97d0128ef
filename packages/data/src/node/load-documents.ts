import { extname } from "node:path";
import { DataError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { filesBelow, isFolder, someOf } from "./files-below.ts";
import { jsonLines } from "./json-lines.ts";
import { readShared } from "./read-shared.ts";
import { requireMemory } from "./require-memory.ts";

/** Which texts there are, and what they become. */
export interface DocumentOptions {
  /** A file of text, one of JSON lines (`.jsonl`), a folder with such files, or several of these, in their order. */
  readonly file: string | readonly string[];
  /** Key of the text in JSON lines. Default: text. */
  readonly field?: string | undefined;
  /** Stands between documents. Default: the token that ends a text, where the tokenizer has one, or an empty line. */
  readonly separator?: string | undefined;
  /** Leave out lines that hold no text, instead of giving up. */
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

const extensions: ReadonlySet<string> = new Set([".jsonl", ".md", ".txt"]);
const cure = "name a file of text or of JSON lines, or a folder with such files";

/** @throws DataError for a folder without texts, and for no place at all. */
const filesAt = (places: readonly string[]): string[] => {
  const files = places.flatMap((place) => {
    if (!isFolder(place)) return [place];
    const texts = filesBelow(place).filter((path) => extensions.has(extname(path).toLowerCase()));
    if (texts.length === 0)
      throw new DataError(`${place} holds no texts (${[...extensions].join(", ")}); put some in, or name a file`);
    return texts;
  });
  if (files.length === 0) throw new DataError(`data.file names no files; ${cure}`);
  return files;
};

const isJsonLines = (path: string): boolean => extname(path).toLowerCase() === ".jsonl";

/** Texts of a file, each with a string or its bytes; what is wrong with a line goes to `damaged`. */
function* documentsOf(
  path: string,
  { field = "text", skipDamaged = false }: DocumentOptions,
  damaged: string[],
): Generator<string | Uint8Array, void> {
  if (!isJsonLines(path)) {
    yield readShared(path, cure).bytes;
    return;
  }
  for (const { place, value, fault } of jsonLines(path, cure)) {
    const text = value?.[field];
    if (typeof text === "string") {
      yield text;
      continue;
    }
    const why =
      fault ??
      (text === undefined
        ? `has no key ${field}, but ${Object.keys(value!).slice(0, 5).join(", ") || "none"}`
        : `has a ${field} that is no string`);
    if (!skipDamaged)
      throw new DataError(
        `${place}: the line ${why}; correct it, ${fault === undefined ? "set field, " : ""}or leave such lines out with skipDamaged: true`,
      );
    damaged.push(place);
  }
}

/**
 * The texts of files, of lines of JSON, or of folders of both, in their order, each a string or its bytes.
 *
 * @param damaged takes the places of lines that are left out.
 * @throws DataError for files that cannot be read, and for a damaged line unless it is to be skipped.
 */
export function* eachDocument(options: DocumentOptions, damaged: string[]): Generator<string | Uint8Array, void> {
  for (const path of filesAt([options.file].flat())) yield* documentsOf(path, options, damaged);
}

const encoder = new TextEncoder();
const mostTextBytes = 2 ** 29 - 24;

/** A text of UTF-8; a mark at its beginning is part of it. @throws DataError for one that no string holds. */
export const textOf = (bytes: Uint8Array): string => {
  if (bytes.length > mostTextBytes)
    throw new DataError(
      `a text of ${bytes.length} bytes is more than a string holds, ${mostTextBytes}; split the file, or make lines of .jsonl of it`,
    );
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes)); // decodes no shared memory
};

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

/** Documents with a separator between any two; empty ones are none. */
const separated = <Text extends Uint8Array | Int32Array>(documents: Iterable<Text>, separator: Text): Text[] => {
  const pieces: Text[] = [];
  for (const document of documents) {
    if (document.length === 0) continue;
    if (pieces.length > 0) pieces.push(separator);
    pieces.push(document);
  }
  return pieces;
};

function* each<From, To>(items: Iterable<From>, change: (item: From) => To): Generator<To, void> {
  for (const item of items) yield change(item);
}

const paragraph = "\n\n";

/**
 * Documents one after the other, in shared memory. Each is encoded by itself, so that no token reaches from one into
 * the next. Empty ones are none.
 */
export const joinDocuments = (
  documents: Iterable<string | Uint8Array>,
  { separator, tokenizer }: Pick<DocumentOptions, "separator" | "tokenizer">,
): Uint8Array | Int32Array => {
  if (tokenizer === undefined) {
    const bytesOf = (text: string | Uint8Array): Uint8Array => (typeof text === "string" ? encoder.encode(text) : text);
    const [first, ...others] = separated(each(documents, bytesOf), bytesOf(separator ?? paragraph));
    // a lone file lies in shared memory already
    if (others.length === 0 && first?.buffer instanceof SharedArrayBuffer) return first;
    return inARow(first === undefined ? [] : [first, ...others], (shared) => new Uint8Array(shared));
  }
  const { endOfText } = tokenizer;
  const between =
    separator === undefined && endOfText !== undefined
      ? Int32Array.of(endOfText)
      : tokenizer.encode(separator ?? paragraph);
  const tokensOf = (document: string | Uint8Array): Int32Array =>
    document.length === 0
      ? new Int32Array(0)
      : tokenizer.encode(typeof document === "string" ? document : textOf(document));
  return inARow(separated(each(documents, tokensOf), between), (shared) => new Int32Array(shared));
};

/**
 * Texts of files, of lines of JSON, or of folders of both, one after the other (see `joinDocuments`).
 *
 * @throws DataError for files that cannot be read, and for a damaged line, with file and line, unless it is to be
 * skipped.
 */
export const loadDocuments = (options: DocumentOptions): Documents => {
  const damaged: string[] = [];
  let count = 0;
  function* counted(): Generator<string | Uint8Array, void> {
    for (const document of eachDocument(options, damaged)) {
      count++;
      yield document;
    }
  }
  const text = joinDocuments(counted(), options);
  if (count === 0 && damaged.length > 0)
    throw new DataError(
      `${someOf([options.file].flat())}: none of ${damaged.length} lines holds a text; restore them, or set field to the key of the text`,
    );
  return {
    text,
    remarks: [
      ...(count === 1 ? [] : [`${count} documents`]),
      ...(damaged.length === 0 ? [] : [`${damaged.length} damaged lines were left out: ${someOf(damaged)}`]),
    ],
  };
};
