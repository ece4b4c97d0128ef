import { DataError } from "../errors.ts";
import { joinBytes } from "../join-bytes.ts";
import { openFile } from "./file-pieces.ts";

/** A line of a JSON Lines file. */
export interface JsonLine {
  /** Location of the line for error messages, `file:line`. */
  readonly location: string;
  /** Line number, from 1. */
  readonly line: number;
  /** JSON object parsed from the line. Undefined if the line is damaged. */
  readonly value: Readonly<Record<string, unknown>> | undefined;
  /** Error message of a damaged line. Undefined if the line is not damaged. */
  readonly fault: string | undefined;
}

/** Maximum length of a line in bytes. V8 limits strings to 2²⁹ characters. */
export const maxLineBytes: number = 2 ** 28;

const newline = 10;

/** Splits consecutive chunks of bytes into lines without their newlines. Memory: one line. */
export class LineCutter {
  private readonly tooLong: () => DataError;
  private pieces: Uint8Array[] = [];
  private bytes = 0;

  /**
   * Creates a splitter at the beginning of a file. @param tooLong Creates the error for a line longer than the maximum.
   */
  constructor(tooLong: () => DataError) {
    this.tooLong = tooLong;
  }

  /** Yields the lines that end in the next chunk of bytes. */
  *cut(piece: Uint8Array): Generator<Uint8Array, void> {
    let from = 0;
    for (let to = piece.indexOf(newline); ; to = piece.indexOf(newline, from)) {
      const rest = piece.slice(from, to < 0 ? undefined : to);
      this.pieces.push(rest);
      this.bytes += rest.length;
      if (this.bytes > maxLineBytes) throw this.tooLong();
      if (to < 0) break;
      yield this.rest();
      from = to + 1;
    }
  }

  /** Returns the bytes after the last newline, and removes them. */
  rest(): Uint8Array {
    const line = joinBytes(...this.pieces);
    [this.pieces, this.bytes] = [[], 0];
    return line;
  }
}

/** Yields the lines of a file, without newlines, with line numbers from 1. Memory: one line. */
function* linesOf(path: string, cure: string): Generator<readonly [number: number, bytes: Uint8Array], void> {
  const file = openFile(path, cure, "json");
  try {
    let number = 1;
    const cutter = new LineCutter(
      () => new DataError(`${path}:${number}: the line has more than ${maxLineBytes} bytes; ${cure}`),
    );
    for (const piece of file.pieces()) for (const line of cutter.cut(piece)) yield [number++, line];
    yield [number, cutter.rest()];
  } finally {
    file.close();
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Parsed value of a line, or its error. */
export type ParsedLine = Pick<JsonLine, "value" | "fault">;

const fault = (what: string): ParsedLine => ({ value: undefined, fault: what });

/** Parses a line. Returns undefined if the line is blank. */
export const parseLine = (bytes: Uint8Array): ParsedLine | undefined => {
  let rule = "is not valid UTF-8";
  try {
    const text = decoder.decode(bytes);
    if (text.trim() === "") return undefined;
    rule = "is not valid JSON";
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { value: value as Readonly<Record<string, unknown>>, fault: undefined };
    return fault("is not a JSON object");
  } catch {
    return fault(rule);
  }
};

/**
 * Reads a JSON Lines file with one object per line. Blank lines are skipped.
 *
 * @throws DataError that ends with `cure` if the file cannot be read.
 */
export function* jsonLines(path: string, cure: string): Generator<JsonLine, void> {
  for (const [number, bytes] of linesOf(path, cure)) {
    const parsed = parseLine(bytes);
    if (parsed !== undefined) yield { location: `${path}:${number}`, line: number, ...parsed };
  }
}
