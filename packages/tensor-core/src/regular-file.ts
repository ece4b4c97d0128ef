import { type FileContent, foreignContent, headBytes } from "./foreign-content.ts";
import { maxBytesPerCall } from "./read-range.ts";
import { utf8Fault } from "./utf8-fault.ts";

interface Stats {
  readonly size: number;
  isFile(): boolean;
}

/** Subset of Node's `fs` functions; this package does not import Node. */
interface FileSystem<Facts extends Stats = Stats> {
  readonly constants: { readonly O_RDONLY: number; readonly O_NONBLOCK?: number; readonly O_NOFOLLOW?: number };
  openSync(path: string, flags: number): number;
  fstatSync(file: number): Facts;
  readSync(file: number, target: Uint8Array, offset: number, length: number, position: number): number;
  closeSync(file: number): void;
}

/** Expected content of a file, and the errors of its reader. */
interface FileRules {
  /** Content that the file must have. */
  readonly holds: FileContent;
  /** Cure for a file that cannot be read: the end of the error message. */
  readonly cure: string;
  /** Creates the error to throw. */
  readonly fault: (message: string, options?: ErrorOptions) => Error;
}

/** An open regular file. */
interface RegularFile {
  /** File descriptor. */
  readonly file: number;
  readonly sizeBytes: number;
}

/** Read until `target` is full or the file ends. @returns the number of bytes read. */
const readInto = (fs: FileSystem, file: number, target: Uint8Array, position: number): number => {
  let filled = 0;
  while (filled < target.length) {
    const most = Math.min(target.length - filled, maxBytesPerCall);
    const count = fs.readSync(file, target, filled, most, position + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
};

/**
 * Open a file that others may have placed, and reject everything except a regular file: a device may never end, and a
 * pipe may never begin.
 *
 * @param followsLinks whether the last part of the path may be a symbolic link. Default: true.
 * @returns a file descriptor that the caller closes, and the file's stats.
 * @throws the system's error, or an Error that completes "cannot be read (…)".
 */
export const openIfRegular = <Facts extends Stats>(
  { constants, openSync, fstatSync, closeSync }: Omit<FileSystem<Facts>, "readSync">,
  path: string,
  followsLinks = true,
): { readonly file: number; readonly stats: Facts } => {
  // Opening a pipe waits for its writer unless O_NONBLOCK is set; regular files ignore the flag.
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
 * Open a file as `openIfRegular` does. Also rejects a file that begins with the signature of another format.
 *
 * @throws the error that `rules.fault` creates.
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

/** V8 strings are limited to less than half a gibibyte. */
const maxTextBytes = 2 ** 29 - 24;

/**
 * Read a whole UTF-8 file, without its byte order mark; see `openRegularFile`.
 *
 * @throws the error that `rules.fault` creates; for bytes that are not UTF-8, with the offset of the first.
 */
export const readRegularText = (fs: FileSystem, path: string, rules: FileRules): string => {
  const { cure, fault } = rules;
  const { file, sizeBytes } = openRegularFile(fs, path, rules);
  let bytes: Uint8Array;
  try {
    if (sizeBytes > maxTextBytes)
      throw fault(`${path} has ${sizeBytes} bytes, but at most ${maxTextBytes} are read as text; ${cure}`);
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
