import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { readRange } from "@skein/tensor-core/backend";

/** A byte range of a file. */
export interface FilePart {
  readonly begin: number;
  readonly sizeBytes: number;
}

/**
 * Reads a file, or a part of it. @throws Error with the system's code, or if the part extends beyond the end of the
 * file.
 */
type FileReader = (path: string, part?: FilePart) => Promise<Uint8Array>;

const whole = (bytes: Uint8Array, { begin, sizeBytes }: FilePart): Uint8Array => {
  if (bytes.length < sizeBytes) throw new Error(`it ends after ${begin + bytes.length} bytes`);
  return bytes;
};

/** Flags for opening a file so that reading does not wait for the writer of a named pipe. */
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Maximum size of an encoded image in bytes. Several images are in memory at the same time. */
export const maxImageBytes: number = 2 ** 28;

/** Throws for a named pipe, which may never have a writer, and for a device, which may never end. */
const requireRegular = (stats: Stats, part: FilePart | undefined): void => {
  if (!stats.isFile()) throw new Error("it is not a regular file");
  if (part === undefined && stats.size > maxImageBytes)
    throw new Error(`it has ${stats.size} bytes, but the maximum for an image is ${maxImageBytes}`);
};

const readOnThread: FileReader = async (path, part) => {
  const file = openSync(path, flags);
  try {
    requireRegular(fstatSync(file), part);
    if (part === undefined) return readFileSync(file);
    const source = {
      read: async (target: Uint8Array, offset: number, length: number, position: number) => ({
        bytesRead: readSync(file, target, offset, length, position),
      }),
    };
    return whole(await readRange(source, part.begin, part.begin + part.sizeBytes), part);
  } finally {
    closeSync(file);
  }
};

const readInPool: FileReader = async (path, part) => {
  const file = await open(path, flags);
  try {
    requireRegular(await file.stat(), part);
    if (part === undefined) return await file.readFile();
    return whole(await readRange(file, part.begin, part.begin + part.sizeBytes), part);
  } finally {
    await file.close();
  }
};

/** Time in milliseconds above which a read counts as slow. A file in the page cache takes a twentieth of this time. */
const slowAfterMilliseconds = 2;
/** Number of reads on libuv's threads after a slow read. */
const numAsyncReads = 100;

/** Runs one of two implementations of the same work: `sync` on this thread, or `pooled` asynchronously. */
type Quick = <Result>(sync: () => Result | Promise<Result>, pooled: () => Promise<Result>) => Promise<Result>;

/**
 * Returns a function that runs `sync` on this thread while calls are fast. After a slow call, the next calls run
 * `pooled` instead.
 */
export const syncOrPooled = (slowAfter: number = slowAfterMilliseconds): Quick => {
  let numLeft = 0;
  return async (sync, pooled) => {
    if (numLeft > 0) {
      numLeft--;
      return pooled();
    }
    const began = performance.now();
    const result = await sync();
    if (performance.now() - began > slowAfter) numLeft = numAsyncReads;
    return result;
  };
};

/**
 * Returns a function that reads small files. Files in the page cache are read synchronously on this thread, in
 * microseconds. On libuv's threads, each read would take four round trips and block the decoding threads. After a slow
 * read from a disk or a network, the next files are read on libuv's threads, several at the same time.
 */
export const quickReader = (slowAfter?: number): FileReader => {
  const quickly = syncOrPooled(slowAfter);
  return (path, part) =>
    quickly(
      () => readOnThread(path, part),
      () => readInPool(path, part),
    );
};
