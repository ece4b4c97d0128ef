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

const decoder = new TextDecoder();
const textOf = (bytes: Uint8Array): string => {
  const end = bytes.indexOf(0);
  return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
};

/** Octal digits, or with the highest bit set (GNU) a big-endian number. NaN for neither. */
const numberIn = (bytes: Uint8Array): number => {
  if (bytes[0]! & 0x80) return bytes.subarray(1).reduce((value, byte) => value * 256 + byte, bytes[0]! & 0x7f);
  const digits = textOf(bytes).trim();
  return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : NaN;
};

/** All bytes of a header, those of the sum itself as spaces. */
const sumOf = (header: Uint8Array): number =>
  header.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 0x20 : byte), 0);

/** Records "length key=value\n" of a pax header; lengths count bytes. */
const paxRecords = (bytes: Uint8Array): Map<string, string> => {
  const records = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(decoder.decode(bytes.subarray(at, space)));
    if (space < 0 || !(length > 0)) break;
    const text = decoder.decode(bytes.subarray(space + 1, at + length - 1));
    records.set(text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1));
    at += length;
  }
  return records;
};

/** What headers before a file say of it. */
interface Said {
  readonly name?: string | undefined;
  readonly size?: number | undefined;
}

/**
 * Regular files of a tar (ustar, GNU, pax), in their order, with their places. Folders, links and devices are passed
 * over. What a file holds can be read until the next one is asked for.
 *
 * @param from where headers of a file begin. Default: the beginning.
 * @throws DataError for what is no tar, is damaged, or ends too early.
 */
export async function* tarEntries(bytes: TarBytes, from = 0): AsyncGenerator<FoundEntry, void> {
  let said: Said = {};
  let first = from;
  let at = from;
  while (await bytes.hasMore(at)) {
    const header = await bytes.at(at, blockBytes);
    if (header.every((byte) => byte === 0)) return;
    const [size, sum] = [numberIn(header.subarray(124, 136)), numberIn(header.subarray(148, 156))];
    if (sum !== sumOf(header) || Number.isNaN(size))
      throw new DataError(
        at === 0
          ? `${bytes.name} is no tar; name shards of WebDataset, tar files that are not compressed`
          : `${bytes.name} is damaged at byte ${at}, where a file's header should be; copy it again`,
      );
    const begin = at + blockBytes;
    const type = String.fromCharCode(header[156]!);
    const sizeBytes = said.size ?? size;
    if (type === "L") said = { name: textOf(await bytes.at(begin, size)), size: said.size };
    else if (type === "x") {
      const records = paxRecords(await bytes.at(begin, size));
      const paxSize = records.get("size");
      said = {
        name: records.get("path") ?? said.name,
        size: paxSize === undefined ? said.size : Number(paxSize),
      };
    } else if (type !== "g" && type !== "K") {
      const prefix = textOf(header.subarray(257, 262)) === "ustar" ? textOf(header.subarray(345, 500)) : "";
      const short = textOf(header.subarray(0, 100));
      if (type === "0" || type === "\0" || type === "7") {
        bytes.require(begin + sizeBytes);
        yield { name: said.name ?? (prefix === "" ? short : `${prefix}/${short}`), begin, sizeBytes, header: first };
      }
      said = {};
    }
    at = begin + Math.ceil(sizeBytes / blockBytes) * blockBytes;
    if (said.name === undefined && said.size === undefined) first = at;
  }
  if (said.name !== undefined || said.size !== undefined) throw cutOff(bytes.name, at);
}
