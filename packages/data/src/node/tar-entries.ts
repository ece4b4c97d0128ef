import { excerpt } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import type { ByteSource } from "./byte-source.ts";

// Libraries for tar give what files hold one after the other, and not where it lies; samples are drawn from anywhere.

/** A regular file in a tar. */
export interface TarEntry {
  readonly name: string;
  /** Where its bytes lie in the tar. */
  readonly begin: number;
  readonly sizeBytes: number;
}

/** The same with where its headers begin, from which on a tar can be read, too. */
export interface FoundEntry extends TarEntry {
  readonly header: number;
}

/** Bytes of a tar, to be read from its beginning to its end. */
export interface TarBytes {
  readonly name: string;
  /** Bytes that are no further back than those before. @throws DataError where there are none so far. */
  at(begin: number, count: number): Promise<Uint8Array>;
  hasMore(begin: number): Promise<boolean>;
  /** @throws DataError where it is known already that there are fewer bytes. */
  require(end: number): void;
}

const blockBytes = 512;
/** Of one read. From a web server a shard comes as a whole: asking for headers alone takes a request for each. */
const pieceBytes = 2 ** 22;

/** A tar that has no more bytes than those. */
export const cutOff = (name: string, sizeBytes: number): DataError =>
  new DataError(`${name} ends after ${sizeBytes} bytes, in the middle of a file; copy it again`);

/** Reads a source of which any part can be read, with what was read last at hand. */
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

/** A count of bytes in a file: nothing else moves a reader forwards. */
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

/** Octal digits, 0 for none, or with the highest bit set (GNU) a big-endian number. NaN if it is no count. */
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

/** All bytes of a header, those of the sum itself as spaces. */
const sumOf = (header: Uint8Array): number =>
  header.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 0x20 : byte), 0);

/** Records "length key=value\n" of a pax header; lengths count bytes. Undefined if one is not of that form. */
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

/** What headers before a file say of it. */
interface Said {
  readonly name?: string | undefined;
  readonly size?: number | undefined;
  /** Whether its bytes are stored without the holes between them. */
  readonly isSparse?: boolean;
}

/** Types of headers that say something of the file behind them. */
const isAboutNext = (type: string): boolean => "xXgLK".includes(type);
/** Links, devices, folders and pipes: nothing follows their headers, whatever size these have. */
const isWithoutBytes = (type: string): boolean => "123456".includes(type);
const isRegular = (type: string): boolean => type === "0" || type === "\0" || type === "7";

/** Names and attributes have a few hundred bytes. */
const mostHeaderBytes = 2 ** 24;

/** What is wrong with a tar at a place, if it is not what a file's header should be. */
const damagedAt = (name: string, at: number, what: string): DataError =>
  new DataError(`${name} is damaged at byte ${at}, ${what}; copy it again`);

/** @throws DataError for a size that is no count. */
const sizeOf = (text: string | undefined, name: string, at: number): number | undefined => {
  if (text === undefined) return undefined;
  const size = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!isCount(size)) throw damagedAt(name, at, `where an extended header says that a file has size=${excerpt(text)}`);
  return size;
};

/** What a header says of the file behind it, with what others said before. */
const saidBy = (type: string, content: Uint8Array, before: Said, name: string, at: number): Said => {
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
 * Regular files of a tar (ustar, GNU, pax, v7), in their order, with their places. Folders, links, devices and labels
 * are passed over. What a file holds can be read until the next one is asked for.
 *
 * @param from where headers of a file begin. Default: the beginning.
 * @throws DataError for what is no tar, is damaged, ends too early, or has files that do not lie there as a whole.
 */
export async function* tarEntries(bytes: TarBytes, from = 0): AsyncGenerator<FoundEntry, void> {
  let said: Said = {};
  let first = from;
  let end = from;
  for (let at = from; await bytes.hasMore(at); ) {
    const header = await bytes.at(at, blockBytes);
    if (header.every((byte) => byte === 0)) return;
    const [size, sum] = [numberIn(header.subarray(124, 136)), numberIn(header.subarray(148, 156))];
    if (sum !== sumOf(header))
      throw at === 0
        ? new DataError(`${bytes.name} is no tar; name shards of WebDataset, tar files that are not compressed`)
        : damagedAt(bytes.name, at, "where a file's header should be");
    const type = String.fromCharCode(header[156]!);
    const isHeader = isAboutNext(type);
    if (!isWithoutBytes(type) && (Number.isNaN(size) || (isHeader && size > mostHeaderBytes)))
      throw damagedAt(bytes.name, at, "where the header of a file has a size that none can have");
    const sizeBytes = isWithoutBytes(type) ? 0 : isHeader ? size : (said.size ?? size);
    const begin = at + blockBytes;
    end = begin + sizeBytes;
    bytes.require(end);
    if (isHeader) said = saidBy(type, await bytes.at(begin, size), said, bytes.name, at);
    else {
      const prefix = textOf(header.subarray(257, 262)) === "ustar" ? textOf(header.subarray(345, 500)) : "";
      const short = textOf(header.subarray(0, 100));
      const name = said.name ?? (prefix === "" ? short : `${prefix}/${short}`);
      if (type === "S" || said.isSparse === true)
        throw new DataError(
          `${bytes.name}: ${excerpt(name)} is stored with holes (tar --sparse), which is not read; make the tar without --sparse`,
        );
      if (type === "M")
        throw new DataError(
          `${bytes.name} is one of several volumes of a tar (tar --multi-volume), which are not read alone; make a tar of its own of each part`,
        );
      // before POSIX folders had no type of their own
      if (isRegular(type) && !name.endsWith("/")) yield { name, begin, sizeBytes, header: first };
      said = {};
    }
    at = begin + Math.ceil(sizeBytes / blockBytes) * blockBytes;
    if (said.name === undefined && said.size === undefined) first = at;
  }
  bytes.require(end);
  if (said.name !== undefined || said.size !== undefined) throw cutOff(bytes.name, end);
}
