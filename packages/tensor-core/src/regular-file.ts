import { type FileContent, foreignContent, headBytes } from "./foreign-content.ts";
import { mostBytesPerCall } from "./read-range.ts";
import { utf8Fault } from "./utf8-fault.ts";

/** The functions of Node's `fs` that are needed; this package does not import Node. */
interface FileSystem {
  readonly constants: { readonly O_RDONLY: number; readonly O_NONBLOCK?: number };
  openSync(path: string, flags: number): number;
  fstatSync(file: number): { readonly size: number; isFile(): boolean };
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
 * Opens a file that others may have put there. A pipe or a device is refused and not waited for, and so is a file whose
 * first bytes are those of another format.
 *
 * @throws the error that `rules.fault` makes.
 */
export const openRegularFile = (fs: FileSystem, path: string, { holds, cure, fault }: FileRules): RegularFile => {
  let file: number;
  try {
    // Opening a pipe waits for its writer unless the system is asked not to.
    file = fs.openSync(path, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    const { code, message } = cause as Error & { readonly code?: string };
    throw fault(`${path} cannot be read (${code ?? message}); ${cure}`, { cause });
  }
  try {
    const stats = fs.fstatSync(file);
    if (!stats.isFile()) throw fault(`${path} is no regular file; ${cure}`);
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
