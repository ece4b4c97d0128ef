import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { readRange } from "@skein/tensor-core/backend";

/** Bytes of a file. */
export interface FilePart {
  readonly begin: number;
  readonly sizeBytes: number;
}

/** Reads a file, or a part of it. @throws Error with the system's code, and for a part that the file has not all of. */
type FileReader = (path: string, part?: FilePart) => Promise<Uint8Array>;

const whole = (bytes: Uint8Array, { begin, sizeBytes }: FilePart): Uint8Array => {
  if (bytes.length < sizeBytes) throw new Error(`it ends after ${begin + bytes.length} bytes`);
  return bytes;
};

/** To read, without waiting for the writer of a pipe. */
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Images of so many bytes as they are encoded, or as a whole file: several are in memory at once. */
export const mostImageBytes: number = 2 ** 28;

/** A pipe never begins, and a device never ends. */
const requireRegular = (stats: Stats, part: FilePart | undefined): void => {
  if (!stats.isFile()) throw new Error("it is no regular file");
  if (part === undefined && stats.size > mostImageBytes)
    throw new Error(`it has ${stats.size} bytes, at most ${mostImageBytes} are read of an image`);
};

const readHere: FileReader = async (path, part) => {
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

const readAside: FileReader = async (path, part) => {
  const file = await open(path, flags);
  try {
    requireRegular(await file.stat(), part);
    if (part === undefined) return await file.readFile();
    return whole(await readRange(file, part.begin, part.begin + part.sizeBytes), part);
  } finally {
    await file.close();
  }
};

/** A file that the system has in memory takes a twentieth of it. */
const slowAfterMilliseconds = 2;
/** So many files are read aside after a slow one. */
const numAside = 100;

/** Does a piece of work here, or aside. */
type Quick = <Result>(here: () => Result | Promise<Result>, aside: () => Promise<Result>) => Promise<Result>;

/** What this thread does itself while that takes no time, and has done aside for a while once it did. */
export const quickOrAside = (slowAfter: number = slowAfterMilliseconds): Quick => {
  let numLeft = 0;
  return async (here, aside) => {
    if (numLeft > 0) {
      numLeft--;
      return aside();
    }
    const began = performance.now();
    const result = await here();
    if (performance.now() - began > slowAfter) numLeft = numAside;
    return result;
  };
};

/**
 * Small files that the system has in memory are read by this thread, which waits some microseconds; by the threads of
 * libuv each takes four calls there and back, and keeps those that decode. Where one takes long, on a disk that is
 * asked first or across a network, the next ones are read there, several at once.
 */
export const quickReader = (slowAfter?: number): FileReader => {
  const quickly = quickOrAside(slowAfter);
  return (path, part) =>
    quickly(
      () => readHere(path, part),
      () => readAside(path, part),
    );
};
