import { closeSync, lstatSync, readSync } from "node:fs";
import { openRegularFile } from "@skein/collectives/files";
import { LineSplitter } from "../files/line-splitter.ts";
import { MetricTable } from "./metric-table.ts";
import { type FileStamp, isUnchanged, stampOf } from "../files/file-stamp.ts";

/** Bytes of a piece: it takes a page a few milliseconds. */
const pieceBytes = 2 ** 18;
/** So many bytes before the place that was read up to, by which a file that was written anew is known. */
const markBytes = 256;

/** How far a file of metrics has been read. */
export interface TailPlace {
  /** Bytes read. */
  readonly offset: number;
  /** The last of them. */
  readonly mark: Uint8Array;
  /** Of the file when it was read last; undefined before the first time. */
  readonly stamp: FileStamp | undefined;
}

/** What follows in a file of metrics. */
export interface TailReading {
  readonly stamp: FileStamp;
  /** Whether the file was replaced, cut or rewritten, so that earlier reads are no longer true. */
  readonly isAnew: boolean;
  /** The next bytes, 256 KiB at most. */
  readonly piece: Uint8Array<ArrayBuffer>;
}

/**
 * Read what is new in a file of metrics that another process appends to: the next piece, or the first one where the
 * file was replaced, cut or rewritten, as by a resume.
 *
 * @returns undefined where the file has not changed.
 * @throws the system's error, ENOENT too: then the run has been deleted; an Error for anything but a regular file.
 */
export const readTail = (path: string, { offset, mark, stamp }: TailPlace): TailReading | undefined => {
  const now = stampOf(lstatSync(path));
  if (stamp !== undefined && offset >= stamp.bytes && isUnchanged(stamp, now)) return undefined;
  const { file, stats } = openRegularFile(path, false);
  try {
    const isAnew = offset > 0 && (stats.ino !== stamp?.inode || !isContinued(file, offset, mark));
    const from = isAnew ? 0 : offset;
    const piece = new Uint8Array(Math.min(pieceBytes, Math.max(0, stats.size - from)));
    // Less than was asked for: it was cut meanwhile, and the next look sees it.
    const bytes = piece.length === 0 ? 0 : readSync(file, piece, 0, piece.length, from);
    return { stamp: stampOf(stats), isAnew, piece: piece.subarray(0, bytes) };
  } finally {
    closeSync(file);
  }
};

/** Whether the bytes that were read last are still in their place; in a file that was cut before them, they are not. */
const isContinued = (file: number, offset: number, mark: Uint8Array): boolean => {
  const before = Buffer.alloc(mark.length);
  return readSync(file, before, 0, before.length, offset - before.length) === mark.length && before.equals(mark);
};

/** Follows a file of metrics that another process appends to, by what `readTail` has read of it. */
export class MetricTail {
  table: MetricTable = new MetricTable();
  place: TailPlace = { offset: 0, mark: new Uint8Array(0), stamp: undefined };
  private splitter: LineSplitter = this.makeSplitter();
  private generations = 0;

  /** When the file was last written, milliseconds since 1970; 0 before it was seen. */
  get writtenAt(): number {
    return this.place.stamp?.writtenAt ?? 0;
  }

  /** Of the points that are known: grows when some that were told are no longer true. */
  get generation(): number {
    return this.generations + this.table.generation;
  }

  /** Share of the file that has been read; 1 where all has. */
  get share(): number {
    const { offset, stamp } = this.place;
    return stamp === undefined || offset >= stamp.bytes ? 1 : offset / stamp.bytes;
  }

  /** Take in what was read from `place` on. */
  take({ stamp, isAnew, piece }: TailReading): void {
    if (isAnew) this.startAnew();
    this.splitter.take(Buffer.from(piece.buffer, piece.byteOffset, piece.length));
    const { offset, mark } = this.place;
    this.place = {
      offset: offset + piece.length,
      mark: Uint8Array.from(Buffer.concat([mark, piece.subarray(-markBytes)]).subarray(-markBytes)),
      stamp,
    };
  }

  private startAnew(): void {
    this.generations += this.table.generation + 1;
    this.table = new MetricTable();
    this.splitter = this.makeSplitter();
    this.place = { offset: 0, mark: new Uint8Array(0), stamp: undefined };
  }

  private makeSplitter(): LineSplitter {
    return new LineSplitter(
      (text) => this.table.takeLine(text),
      () => this.table.skipLine(),
    );
  }
}
