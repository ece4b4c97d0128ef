import { closeSync, lstatSync, readSync } from "node:fs";
import { type FileStamp, isUnchanged, LineSplitter, stampOf } from "@skein/cli/node";
import { openRegularFile } from "@skein/collectives/files";
import { MetricTable } from "./metric-table.ts";

/** Number of bytes read at a time. This number of bytes is processed in a few milliseconds. */
const pieceBytes = 2 ** 18;
/** Number of bytes before the read position that are stored to detect a rewritten file. */
const markBytes = 256;

/** Read position in a metrics file. */
export interface TailPosition {
  /** Number of bytes read so far. */
  readonly offset: number;
  /** Last bytes that were read, with which a rewritten file is detected. */
  readonly mark: Uint8Array;
  /** Stamp of the file at the last read. Undefined: not read yet. */
  readonly stamp: FileStamp | undefined;
}

/** Newly read bytes of a metrics file. */
export interface TailReading {
  readonly stamp: FileStamp;
  /** Whether the file was replaced, truncated or rewritten, so that earlier reads are invalid. */
  readonly isReplaced: boolean;
  /** Newly read bytes, at most 256 KiB. */
  readonly piece: Uint8Array<ArrayBuffer>;
}

/**
 * Reads the next bytes of a metrics file to which another process appends. Reads the first bytes if the file was
 * replaced, truncated or rewritten, as after a resume.
 *
 * @returns undefined if the file has not changed.
 * @throws the system's error, including ENOENT if the run was deleted; an Error if the path is not a regular file.
 */
export const readTail = (path: string, { offset, mark, stamp }: TailPosition): TailReading | undefined => {
  const now = stampOf(lstatSync(path));
  if (stamp !== undefined && offset >= stamp.bytes && isUnchanged(stamp, now)) return undefined;
  const { file, stats } = openRegularFile(path, false);
  try {
    const isReplaced = offset > 0 && (stats.ino !== stamp?.inode || !isContinued(file, offset, mark));
    const from = isReplaced ? 0 : offset;
    const piece = new Uint8Array(Math.min(pieceBytes, Math.max(0, stats.size - from)));
    // A short read means that the file was just truncated, which the next check detects.
    const bytes = piece.length === 0 ? 0 : readSync(file, piece, 0, piece.length, from);
    return { stamp: stampOf(stats), isReplaced, piece: piece.subarray(0, bytes) };
  } finally {
    closeSync(file);
  }
};

/**
 * Whether the file still contains the last bytes that were read, at the same offset. False if the file was truncated or
 * rewritten before that offset.
 */
const isContinued = (file: number, offset: number, mark: Uint8Array): boolean => {
  const before = Buffer.alloc(mark.length);
  return readSync(file, before, 0, before.length, offset - before.length) === mark.length && before.equals(mark);
};

/** Follows a metrics file to which another process appends, using the results of `readTail`. */
export class MetricTail {
  table: MetricTable = new MetricTable();
  place: TailPosition = { offset: 0, mark: new Uint8Array(0), stamp: undefined };
  private splitter: LineSplitter = this.makeSplitter();
  private generations = 0;

  /** Time at which the file was last written, in milliseconds since 1970; 0 if not read yet. */
  get writtenAt(): number {
    return this.place.stamp?.writtenAt ?? 0;
  }

  /** Version of the rows. Incremented when rows that were already reported become invalid. */
  get generation(): number {
    return this.generations + this.table.generation;
  }

  /** Share of the file that has been read, 0 to 1. */
  get share(): number {
    const { offset, stamp } = this.place;
    return stamp === undefined || offset >= stamp.bytes ? 1 : offset / stamp.bytes;
  }

  /** Processes the bytes that `readTail` has read at the read position `place`. */
  take({ stamp, isReplaced, piece }: TailReading): void {
    if (isReplaced) this.restart();
    this.splitter.take(Buffer.from(piece.buffer, piece.byteOffset, piece.length));
    const { offset, mark } = this.place;
    this.place = {
      offset: offset + piece.length,
      mark: Uint8Array.from(Buffer.concat([mark, piece.subarray(-markBytes)]).subarray(-markBytes)),
      stamp,
    };
  }

  private restart(): void {
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
