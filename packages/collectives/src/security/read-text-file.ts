import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";

/** A file's text, and what the system says of it. */
interface TextFile {
  readonly text: string;
  readonly stats: Stats;
}

/**
 * Read a small file of text that others may have put there: a regular one (a device never ends, a pipe never begins), of bounded size.
 *
 * @param mostBytes that such a file may have.
 * @throws the system's error, or an Error that says in a few words what the file is instead.
 * Cost: reads and makes room for at most `mostBytes`, whatever the size was said to be.
 */
export const readTextFile = (path: string, mostBytes: number): TextFile => {
  // Opening a pipe waits for its writer, unless told not to; on regular files the flag means nothing.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error("it is no regular file");
    if (stats.size > mostBytes) throw new Error(`it has ${stats.size} bytes, at most ${mostBytes} are allowed`);
    const bytes = Buffer.alloc(mostBytes + 1); // a file of /proc says that it is empty
    let length = 0;
    for (let read = -1; read !== 0 && length <= mostBytes; length += read)
      read = readSync(file, bytes, length, bytes.length - length, null);
    if (length > mostBytes) throw new Error(`it grew beyond ${mostBytes} bytes while it was read`);
    return { text: bytes.toString("utf8", 0, length), stats };
  } finally {
    closeSync(file);
  }
};
