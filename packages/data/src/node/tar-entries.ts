import { excerpt } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import type { ByteSource } from "./byte-source.ts";

// This module parses tar files itself, because tar libraries yield the contents of files in sequence, but not their
// offsets, and samples are read in random order.

/** A regular file in a tar file. */
export interface TarEntry {
  readonly name: string;
  /** Byte offset of the content in the tar file. */
  readonly begin: number;
  readonly sizeBytes: number;
}

/**
 * A file in a tar file, and the byte offset of the file's first header. Reading of the tar file can start at this
 * offset.
 */
export interface FoundEntry extends TarEntry {
  readonly header: number;
}

/** Forward-only access to the bytes of a tar file. */
export interface TarBytes {
  readonly name: string;
  /**
   * Returns `count` bytes at offset `begin`. Offsets must not decrease from call to call.
   *
   * @throws DataError if the tar file ends before the last of these bytes.
   */
  at(begin: number, count: number): Promise<Uint8Array>;
  hasMore(begin: number): Promise<boolean>;
  /**
   * Checks that the tar file contains all bytes before an offset, if its size is known. @throws DataError if bytes
   * before the offset are missing.
   */
  require(end: number): void;
}

const blockBytes = 512;
/**
 * Size of one read in bytes. A shard on a web server is read completely, because reading only the headers would cost
 * one request per file.
 */
const pieceBytes = 2 ** 22;

/** Creates the error for a truncated tar file. */
export const cutOff = (name: string, sizeBytes: number): DataError =>
  new DataError(`${name} ends after ${sizeBytes} bytes, in the middle of a file; copy it again`);

/** Reads from a source with random access, and buffers the last read. */
export class SourcePieces implements TarBytes {
  private readonly source: ByteSource;
  private piece: Uint8Array = new Uint8Array(0);
  private first = 0;

  constructor(source: ByteSource) {
    this.source = source;
  }

  get name(): string {
    return this.source.name;
  }

  async hasMore(begin: number): Promise<boolean> {
    return begin < this.source.sizeBytes;
  }

  require(end: number): void {
    if (end > this.source.sizeBytes) throw cutOff(this.name, this.source.sizeBytes);
  }

  async at(begin: number, count: number): Promise<Uint8Array> {
    this.require(begin + count);
    if (begin < this.first || begin + count > this.first + this.piece.length) {
      const end = Math.min(this.source.sizeBytes, begin + Math.max(count, pieceBytes));
      [this.piece, this.first] = [await this.source.read(begin, end), begin];
    }
    return this.piece.subarray(begin - this.first, begin - this.first + count);
  }
}

const newline = 0x0a;

const decoder = new TextDecoder();
const textOf = (bytes: Uint8Array): string => {
  const end = bytes.indexOf(0);
  return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
};

/**
 * Whether a value is a valid number of bytes: a non-negative safe integer. Other values could move a reader backward.
 */
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

/**
 * Parses octal digits (no digits: 0), or a big-endian number if the highest bit is set (GNU). Returns NaN for an
 * invalid number.
 */
const numberIn = (bytes: Uint8Array): number => {
  const digits = textOf(bytes).trim();
  const isBinary = (bytes[0]! & 0x80) !== 0;
  const value = isBinary
    ? bytes.subarray(1).reduce((sum, byte) => sum * 256 + byte, bytes[0]! & 0x7f)
    : /^[0-7]*$/.test(digits)
      ? Number.parseInt(`0${digits}`, 8)
      : NaN;
  return isCount(value) ? value : NaN;
};

/** Returns the checksum of a header: the sum of its bytes, with the bytes of the checksum field counted as spaces. */
const sumOf = (header: Uint8Array): number =>
  header.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 0x20 : byte), 0);

/**
 * Parses the records "length key=value " of a pax header, with lengths in bytes. Returns undefined if a record is
 * malformed.
 */
const paxRecords = (bytes: Uint8Array): Map<string, string> | undefined => {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length && bytes[at] !== 0; ) {
    const space = bytes.indexOf(0x20, at);
    const digits = space < 0 ? "" : decoder.decode(bytes.subarray(at, space));
    const end = at + (/^[1-9]\d{0,15}$/.test(digits) ? Number(digits) : NaN);
    const equals = bytes.indexOf(0x3d, space);
    if (!(end <= bytes.length) || bytes[end - 1] !== newline || equals < 0 || equals >= end) return undefined;
    records.set(decoder.decode(bytes.subarray(space + 1, equals)), decoder.decode(bytes.subarray(equals + 1, end - 1)));
    at = end;
  }
  return records;
};

/** Attributes of a file that the preceding extended headers define. */
interface Attributes {
  readonly name?: string | undefined;
  readonly size?: number | undefined;
  /** Whether the file is sparse. The archive stores its content without holes. */
  readonly isSparse?: boolean;
}

/** Whether a header type describes the following file. */
const isExtendedHeader = (type: string): boolean => "xXgLK".includes(type);
/** Whether a header of this type has no content, whatever its size field: links, devices, folders and pipes. */
const isWithoutBytes = (type: string): boolean => "123456".includes(type);
const isRegular = (type: string): boolean => type === "0" || type === "\0" || type === "7";

/** Maximum size of an extended header in bytes. Names and attributes need a few hundred bytes. */
const maxHeaderBytes = 2 ** 24;

/** Creates the error for a tar file without a valid header at an offset. */
const damagedAt = (name: string, at: number, what: string): DataError =>
  new DataError(`${name} is damaged at byte ${at}, ${what}; copy it again`);

/** Parses the file size in an extended header; undefined if absent. @throws DataError if the size is invalid. */
const sizeOf = (text: string | undefined, name: string, at: number): number | undefined => {
  if (text === undefined) return undefined;
  const size = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!isCount(size)) throw damagedAt(name, at, `where an extended header has size=${excerpt(text)}`);
  return size;
};

/** Returns the attributes of the following file, updated by another extended header. */
const attributesAfter = (
  type: string,
  content: Uint8Array,
  before: Attributes,
  name: string,
  at: number,
): Attributes => {
  if (type === "L") return { ...before, name: textOf(content) };
  if (type === "g" || type === "K") return before;
  const records = paxRecords(content);
  if (records === undefined) throw damagedAt(name, at, "where an extended header has a malformed record");
  return {
    name: records.get("path") ?? before.name,
    size: sizeOf(records.get("size"), name, at) ?? before.size,
    isSparse: [...records.keys()].some((key) => key.startsWith("GNU.sparse.")),
  };
};

/**
 * Yields the regular files of a tar file (ustar, GNU, pax, v7) in order, with their offsets. Folders, links, devices
 * and labels are skipped. The content of a file can be read until the next file is requested.
 *
 * @param from Byte offset of the first header of a file. Default: 0.
 * @throws DataError if the file is not a tar file, is damaged or truncated, or contains sparse or multi-volume files.
 */
export async function* tarEntries(bytes: TarBytes, from = 0): AsyncGenerator<FoundEntry, void> {
  let attributes: Attributes = {};
  let first = from;
  let end = from;
  for (let at = from; await bytes.hasMore(at); ) {
    const header = await bytes.at(at, blockBytes);
    if (header.every((byte) => byte === 0)) return;
    const [size, sum] = [numberIn(header.subarray(124, 136)), numberIn(header.subarray(148, 156))];
    if (sum !== sumOf(header))
      throw at === 0
        ? new DataError(`${bytes.name} is not a tar; give WebDataset shards, uncompressed tar files`)
        : damagedAt(bytes.name, at, "where a file's header should be");
    const type = String.fromCharCode(header[156]!);
    const isHeader = isExtendedHeader(type);
    if (!isWithoutBytes(type) && (Number.isNaN(size) || (isHeader && size > maxHeaderBytes)))
      throw damagedAt(bytes.name, at, "where the header of a file has an impossible size");
    const sizeBytes = isWithoutBytes(type) ? 0 : isHeader ? size : (attributes.size ?? size);
    const begin = at + blockBytes;
    end = begin + sizeBytes;
    bytes.require(end);
    if (isHeader) attributes = attributesAfter(type, await bytes.at(begin, size), attributes, bytes.name, at);
    else {
      const prefix = textOf(header.subarray(257, 262)) === "ustar" ? textOf(header.subarray(345, 500)) : "";
      const short = textOf(header.subarray(0, 100));
      const name = attributes.name ?? (prefix === "" ? short : `${prefix}/${short}`);
      if (type === "S" || attributes.isSparse === true)
        throw new DataError(
          `${bytes.name}: ${excerpt(name)} is a sparse file (tar --sparse), which is not supported; make the tar without --sparse`,
        );
      if (type === "M")
        throw new DataError(
          `${bytes.name} is a volume of a multi-volume tar (tar --multi-volume), which is not supported; make a separate tar of each part`,
        );
      // before POSIX, folders had no separate header type
      if (isRegular(type) && !name.endsWith("/")) yield { name, begin, sizeBytes, header: first };
      attributes = {};
    }
    at = begin + Math.ceil(sizeBytes / blockBytes) * blockBytes;
    if (attributes.name === undefined && attributes.size === undefined) first = at;
  }
  bytes.require(end);
  if (attributes.name !== undefined || attributes.size !== undefined) throw cutOff(bytes.name, end);
}
