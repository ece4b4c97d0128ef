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
const mostLineBytes = 2 ** 28;

const newline = 10;

/** Lines of a file with their numbers from 1, without what ends them. Memory: one line. */
function* linesOf(path: string, cure: string): Generator<readonly [number: number, bytes: Uint8Array], void> {
  const file = openFile(path, cure);
  try {
    let number = 1;
    let pieces: Uint8Array[] = [];
    let bytes = 0;
    for (const piece of file.pieces()) {
      let from = 0;
      for (let to = piece.indexOf(newline); ; to = piece.indexOf(newline, from)) {
        const rest = piece.slice(from, to < 0 ? undefined : to);
        pieces.push(rest);
        bytes += rest.length;
        if (bytes > mostLineBytes)
          throw new DataError(`${path}:${number}: the line has more than ${mostLineBytes} bytes; ${cure}`);
        if (to < 0) break;
        yield [number++, joinBytes(...pieces)];
        [pieces, bytes, from] = [[], 0, to + 1];
      }
    }
    yield [number, joinBytes(...pieces)];
  } finally {
    file.close();
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });

type Parsed = Pick<JsonLine, "value" | "fault">;

const fault = (what: string): Parsed => ({ value: undefined, fault: what });

/** What a line holds, undefined where it is blank. */
const parseLine = (bytes: Uint8Array): Parsed | undefined => {
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
