import { DataError } from "../errors.ts";
import { joinBytes } from "../join-bytes.ts";
import { openFile } from "./file-pieces.ts";

/** A line of a file of JSON lines. */
export interface JsonLine {
  /** `file:line`, as errors call it. */
  readonly place: string;
  /** Its number, from 1. */
  readonly line: number;
  /** What the line holds; undefined where it is damaged. */
  readonly value: Readonly<Record<string, unknown>> | undefined;
  /** What is wrong with it. */
  readonly fault: string | undefined;
}

/** Strings of V8 end at half a gibibyte, and nobody writes such a line. */
export const mostLineBytes: number = 2 ** 28;

const newline = 10;

/** Cuts pieces that follow each other into lines, without what ends them. Memory: one line. */
export class LineCutter {
  private readonly tooLong: () => DataError;
  private pieces: Uint8Array[] = [];
  private bytes = 0;

  /** @param tooLong what to say of a line that no string holds. */
  constructor(tooLong: () => DataError) {
    this.tooLong = tooLong;
  }

  /** Lines that end in the next piece. */
  *cut(piece: Uint8Array): Generator<Uint8Array, void> {
    let from = 0;
    for (let to = piece.indexOf(newline); ; to = piece.indexOf(newline, from)) {
      const rest = piece.slice(from, to < 0 ? undefined : to);
      this.pieces.push(rest);
      this.bytes += rest.length;
      if (this.bytes > mostLineBytes) throw this.tooLong();
      if (to < 0) break;
      yield this.rest();
      from = to + 1;
    }
  }

  /** What stands behind the last line that was ended, and is the next one then. */
  rest(): Uint8Array {
    const line = joinBytes(...this.pieces);
    [this.pieces, this.bytes] = [[], 0];
    return line;
  }
}

/** Lines of a file with their numbers from 1, without what ends them. Memory: one line. */
function* linesOf(path: string, cure: string): Generator<readonly [number: number, bytes: Uint8Array], void> {
  const file = openFile(path, cure, "json");
  try {
    let number = 1;
    const cutter = new LineCutter(
      () => new DataError(`${path}:${number}: the line has more than ${mostLineBytes} bytes; ${cure}`),
    );
    for (const piece of file.pieces()) for (const line of cutter.cut(piece)) yield [number++, line];
    yield [number, cutter.rest()];
  } finally {
    file.close();
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** What a line holds, or what is wrong with it. */
export type ParsedLine = Pick<JsonLine, "value" | "fault">;

const fault = (what: string): ParsedLine => ({ value: undefined, fault: what });

/** What a line holds, undefined where it is blank. */
export const parseLine = (bytes: Uint8Array): ParsedLine | undefined => {
  let rule = "is no UTF-8";
  try {
    const text = decoder.decode(bytes);
    if (text.trim() === "") return undefined;
    rule = "is no JSON";
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { value: value as Readonly<Record<string, unknown>>, fault: undefined };
    return fault("is no JSON object");
  } catch {
    return fault(rule);
  }
};

/**
 * Read a file of JSON lines, an object on each. Blank lines are left out.
 *
 * @throws DataError that ends with `cure` where the file cannot be read.
 */
export function* jsonLines(path: string, cure: string): Generator<JsonLine, void> {
  for (const [number, bytes] of linesOf(path, cure)) {
    const parsed = parseLine(bytes);
    if (parsed !== undefined) yield { place: `${path}:${number}`, line: number, ...parsed };
  }
}
