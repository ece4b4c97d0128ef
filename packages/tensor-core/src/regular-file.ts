import { type FileContent, foreignContent, headBytes } from "./foreign-content.ts";
import { maxBytesPerCall } from "./read-range.ts";
import { utf8Fault } from "./utf8-fault.ts";

interface Stats {
  readonly size: number;
  isFile(): boolean;
}

/** Required subset of Node's `fs` module; passed by the caller, because this package does not import Node. */
interface FileSystem<Facts extends Stats = Stats> {
  readonly constants: { readonly O_RDONLY: number; readonly O_NONBLOCK?: number; readonly O_NOFOLLOW?: number };
  openSync(path: string, flags: number): number;
  fstatSync(file: number): Facts;
  readSync(file: number, target: Uint8Array, offset: number, length: number, position: number): number;
  closeSync(file: number): void;
}

/** Expected content of a file, and the error to throw if the file cannot be read. */
interface FileRules {
  /** Kind of content that the file must have. */
  readonly holds: FileContent;
  /** Suggested fix if the file cannot be read; appended to the error message. */
  readonly cure: string;
  /** Creates the error to throw. */
  readonly fault: (message: string, options?: ErrorOptions) => Error;
}

/** Regular file that is open for reading. */
interface RegularFile {
  /** File descriptor. */
  readonly file: number;
  readonly sizeBytes: number;
}

/** Reads from `position` until `target` is full or the file ends. @returns Number of bytes read. */
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
 * Opens a file of unknown origin if it is a regular file. Other kinds are rejected: reading a device may never end, and
 * reading a pipe may block forever.
 *
 * @param followsLinks Whether the last path component may be a symbolic link. Default: true.
 * @returns A file descriptor, which the caller must close, and the file's stats.
 * @throws The system's error, or an Error with the message "it is no regular file".
 */
export const openIfRegular = <Facts extends Stats>(
  { constants, openSync, fstatSync, closeSync }: Omit<FileSystem<Facts>, "readSync">,
  path: string,
  followsLinks = true,
): { readonly file: number; readonly stats: Facts } => {
  // Opening a pipe blocks until a writer opens it, unless O_NONBLOCK is set. Regular files ignore the flag.
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
 * Opens a file as `openIfRegular` does. Also rejects a file that begins with the signature of another format.
 *
 * @throws the error that `rules.fault` creates.
 */
export const openCheckedFile = (fs: FileSystem, path: string, { holds, cure, fault }: FileRules): RegularFile => {
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

/** Maximum file size of a text, bytes: the maximum string length of V8. */
const maxTextBytes = 2 ** 29 - 24;

/**
 * Reads a whole UTF-8 file, opened with `openCheckedFile`, and removes the byte order mark.
 *
 * @throws the error that `rules.fault` creates; for invalid UTF-8, the message contains the offset of the first invalid
 * byte.
 */
export const readRegularText = (fs: FileSystem, path: string, rules: FileRules): string => {
  const { cure, fault } = rules;
  const { file, sizeBytes } = openCheckedFile(fs, path, rules);
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
