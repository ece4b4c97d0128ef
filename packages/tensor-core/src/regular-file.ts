import { type FileContent, foreignContent, headBytes } from "./foreign-content.ts";
import { mostBytesPerCall } from "./read-range.ts";
import { utf8Fault } from "./utf8-fault.ts";

interface Stats {
  readonly size: number;
  isFile(): boolean;
}

/** The functions of Node's `fs` that are needed; this package does not import Node. */
interface FileSystem<Facts extends Stats = Stats> {
  readonly constants: { readonly O_RDONLY: number; readonly O_NONBLOCK?: number; readonly O_NOFOLLOW?: number };
  openSync(path: string, flags: number): number;
  fstatSync(file: number): Facts;
  readSync(file: number, target: Uint8Array, offset: number, length: number, position: number): number;
  closeSync(file: number): void;
}

/** What a reader says of a file that it cannot use. */
interface FileRules {
  /** What the file must hold. */
  readonly holds: FileContent;
  /** What to do about a file that cannot be read: the end of the message. */
  readonly cure: string;
  /** Makes the error of the reader. */
  readonly fault: (message: string, options?: ErrorOptions) => Error;
}

/** A regular file that is open. */
interface RegularFile {
  /** Its descriptor. */
  readonly file: number;
  readonly sizeBytes: number;
}

/** Reads until `target` is full or the file ends. @returns the number of bytes read. */
const readInto = (fs: FileSystem, file: number, target: Uint8Array, position: number): number => {
  let filled = 0;
  while (filled < target.length) {
    const most = Math.min(target.length - filled, mostBytesPerCall);
    const count = fs.readSync(file, target, filled, most, position + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
};

/**
 * Opens a file that others may have put there, if it is a regular file: a device never ends, a pipe never begins.
 *
 * @param followsLinks whether the last part of the path may be a symbolic link. Default: true.
 * @returns a descriptor that the caller closes, and what the system says of the file.
 * @throws the system's error, or an Error that completes "cannot be read (…)".
 */
export const openIfRegular = <Facts extends Stats>(
  { constants, openSync, fstatSync, closeSync }: Omit<FileSystem<Facts>, "readSync">,
  path: string,
  followsLinks = true,
): { readonly file: number; readonly stats: Facts } => {
  // Opening a pipe waits for its writer unless the system is asked not to; for regular files the flag means nothing.
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (followsLinks ? 0 : (constants.O_NOFOLLOW ?? 0));
  const file = openSync(path, flags);
  try {
    const stats = fstatSync(file);
    if (stats.isFile()) return { file, stats };
  } catch (error) {
    closeSync(file);
    throw error;
  }
  closeSync(file);
  throw new Error("it is no regular file");
};

/**
 * Opens a file as `openIfRegular` does. Refused, too, is a file whose first bytes are those of another format.
 *
 * @throws the error that `rules.fault` makes.
 */
export const openRegularFile = (fs: FileSystem, path: string, { holds, cure, fault }: FileRules): RegularFile => {
  let opened: ReturnType<typeof openIfRegular>;
  try {
    opened = openIfRegular(fs, path);
  } catch (cause) {
    const { code, message } = cause as Error & { readonly code?: string };
    throw fault(`${path} ${code === undefined ? message.replace(/^it /, "") : `cannot be read (${code})`}; ${cure}`, {
      cause,
    });
  }
  const { file, stats } = opened;
  try {
    const head = new Uint8Array(Math.min(headBytes, stats.size));
    const foreign = foreignContent(head.subarray(0, readInto(fs, file, head, 0)), holds);
    if (foreign !== undefined) throw fault(`${path} ${foreign}`);
    return { file, sizeBytes: stats.size };
  } catch (error) {
    fs.closeSync(file);
    throw error;
  }
};

/** Strings of V8 have fewer bytes than half a gibibyte. */
const mostTextBytes = 2 ** 29 - 24;

/**
 * Reads a file of UTF-8 whole, without a byte order mark; see `openRegularFile`.
 *
 * @throws the error that `rules.fault` makes; for bytes that are not UTF-8, with the place of the first.
 */
export const readRegularText = (fs: FileSystem, path: string, rules: FileRules): string => {
  const { cure, fault } = rules;
  const { file, sizeBytes } = openRegularFile(fs, path, rules);
  let bytes: Uint8Array;
  try {
    if (sizeBytes > mostTextBytes)
      throw fault(`${path} has ${sizeBytes} bytes, but at most ${mostTextBytes} are read as text; ${cure}`);
    const target = new Uint8Array(sizeBytes);
    bytes = target.subarray(0, readInto(fs, file, target, 0));
  } finally {
    fs.closeSync(file);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw fault(`${path} is not UTF-8: byte ${utf8Fault(bytes)} begins no character; ${cure}`, { cause });
  }
};
