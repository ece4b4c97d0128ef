import { closeSync, openSync, readSync } from "node:fs";

/** Number of bytes per read. */
const chunkBytes = 1 << 20;

/**
 * Maximum number of characters in a line. Lines of Skein's traces are shorter, and a JavaScript string cannot be much
 * longer.
 */
const maxLineLength = 2 ** 28;

/**
 * Reads a file line by line, without line ends. Nonempty text after the last line end is also returned as a line.
 *
 * @throws RangeError if a line has more than 2²⁸ characters.
 */
export function* readLines(path: string): Generator<string, void> {
  const file = openSync(path, "r");
  try {
    const decoder = new TextDecoder();
    const chunk = new Uint8Array(chunkBytes);
    // Parts of the current line. They are joined only at the end of the line, which may be at the end of the file.
    let parts: string[] = [];
    let length = 0;
    const add = (part: string): void => {
      length += part.length;
      if (length > maxLineLength) throw new RangeError(`a line has more than ${maxLineLength} characters`);
      parts.push(part);
    };
    for (let count = readSync(file, chunk); count > 0; count = readSync(file, chunk)) {
      const [first, ...further] = decoder.decode(chunk.subarray(0, count), { stream: true }).split("\n") as [
        string,
        ...string[],
      ];
      add(first);
      for (const line of further) {
        yield parts.join("");
        parts = [];
        length = 0;
        add(line);
      }
    }
    add(decoder.decode());
    const last = parts.join("");
    if (last !== "") yield last;
  } finally {
    closeSync(file);
  }
}
