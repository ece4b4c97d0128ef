import { extname } from "node:path";
import { DataError } from "../../errors.ts";
import type { Tokenizer } from "../../tokenizer.ts";
import { joinBytes } from "../../join-bytes.ts";
import { packWindows, type TokenPiece, type Tokens } from "../../streams/pack-windows.ts";
import type { ShardReader } from "../../streams/shard-place.ts";
import type { SampleStream, TextShards } from "../../streams/streamed-records.ts";
import { pathOf } from "../byte-source.ts";
import { LineCutter, mostLineBytes, parseLine } from "../json-lines.ts";
import { textOf } from "../load-documents.ts";
import { loadTokenizer } from "../load-tokenizer.ts";
import { parquetColumn } from "../parquet-column.ts";
import { damagedText, lineEntry, rowEntry, type TextEntry } from "../text-entries.ts";
import { piecesOf } from "./piecewise.ts";

/** A text, or a piece of one, and where in its shard it begins. */
interface Piece extends TextEntry {
  readonly offset: number;
  /** Whether the text begins with it, and whether it ends so. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** What a text shard holds, by the name of its file. */
export const formatOf = (place: string): "lines" | "rows" | "text" => {
  const extension = extname(pathOf(place).replace(/\.gz$/i, "")).toLowerCase();
  if (extension === ".jsonl" || extension === ".ndjson" || extension === ".json") return "lines";
  return extension === ".parquet" ? "rows" : "text";
};

async function* linePieces(place: string, field: string, from: number): AsyncGenerator<Piece, void> {
  const path = pathOf(place);
  let at = from;
  const cutter = new LineCutter(
    () => new DataError(`${path}: the line at byte ${at} has more than ${mostLineBytes} bytes; cut it`),
  );
  const pieceOf = (line: Uint8Array): Piece | undefined => {
    const parsed = parseLine(line);
    const offset = at;
    at += line.length + 1;
    return parsed && { ...lineEntry(`${path}, byte ${offset}`, parsed, field), offset, isFirst: true, isLast: true };
  };
  for await (const bytes of piecesOf(place, from))
    for (const line of cutter.cut(bytes)) {
      const piece = pieceOf(line);
      if (piece !== undefined) yield piece;
    }
  const piece = pieceOf(cutter.rest());
  if (piece !== undefined) yield piece;
}

async function* rowPieces(place: string, field: string, from: number): AsyncGenerator<Piece, void> {
  for await (const [row, value] of parquetColumn(place, field, from))
    yield { ...rowEntry(place, row, value, field), offset: row, isFirst: true, isLast: true };
}

/** A text is cut behind the first line that ends after so many bytes of it. */
const cutAfterBytes = 2 ** 16;

async function* textPieces(place: string, from: number): AsyncGenerator<Piece, void> {
  const path = pathOf(place);
  let [at, offset] = [from, from];
  let lines: Uint8Array[] = [];
  const cutter = new LineCutter(
    () => new DataError(`${path}: the line at byte ${at} has more than ${mostLineBytes} bytes; cut it`),
  );
  const newline = Uint8Array.of(10);
  const pieceOf = (isLast: boolean): Piece => ({
    place: path,
    text: joinBytes(...lines),
    offset,
    isFirst: offset === 0,
    isLast,
  });
  for await (const bytes of piecesOf(place, from))
    for (const line of cutter.cut(bytes)) {
      lines.push(line, newline);
      at += line.length + 1;
      if (at - offset < cutAfterBytes) continue;
      yield pieceOf(false);
      [lines, offset] = [[], at];
    }
  lines.push(cutter.rest());
  yield pieceOf(true);
}

const piecesIn = (place: string, field: string, from: number): AsyncGenerator<Piece, void> => {
  switch (formatOf(place)) {
    case "lines":
      return linePieces(place, field, from);
    case "rows":
      return rowPieces(place, field, from);
    case "text":
      return textPieces(place, from);
  }
};

const joinTokens = (one: Tokens, other: Tokens): Tokens => {
  const length = one.length + other.length;
  const row = one instanceof Uint8Array ? new Uint8Array(length) : new Int32Array(length);
  row.set(one);
  row.set(other, one.length);
  return row;
};

/** What makes tokens of texts, and what stands behind each of these. */
interface Encoding {
  encode(text: string | Uint8Array): Tokens;
  readonly end: Tokens;
}

const encoder = new TextEncoder();
const paragraph = "\n\n";

const encodingOf = (separator: string | undefined, tokenizer: Tokenizer | undefined): Encoding => {
  if (tokenizer === undefined)
    return {
      encode: (text) => (typeof text === "string" ? encoder.encode(text) : text),
      end: encoder.encode(separator ?? paragraph),
    };
  const { endOfText } = tokenizer;
  return {
    encode: (text) => tokenizer.encode(typeof text === "string" ? text : textOf(text)),
    end:
      separator === undefined && endOfText !== undefined
        ? Int32Array.of(endOfText)
        : tokenizer.encode(separator ?? paragraph),
  };
};

/**
 * Windows of the texts in a shard, one after the other with a separator behind each. Each text is encoded by itself, a
 * long one of a file of text in pieces that end with a line.
 *
 * @param left is told of a text that cannot be used, where such are to be left out.
 */
export const textReader = (
  { shards, skipDamaged }: Pick<SampleStream, "shards" | "skipDamaged">,
  { field, separator, tokenizer, window }: TextShards,
  left: (place: string, why: string) => void,
): ShardReader<Tokens> => {
  const { encode, end } = encodingOf(separator, tokenizer && loadTokenizer(tokenizer.place, tokenizer.from));
  async function* tokensOf(place: string, from: number): AsyncGenerator<TokenPiece, void> {
    for await (const piece of piecesIn(place, field, from)) {
      const { text, fault, offset, isFirst, isLast } = piece;
      if (text === undefined) {
        if (!skipDamaged) throw damagedText(piece.place, fault!);
        left(piece.place, fault!);
      } else if (text.length > 0 || !isFirst) {
        const tokens = text.length === 0 ? end.subarray(0, 0) : encode(text);
        yield { offset, tokens: isLast ? joinTokens(tokens, end) : tokens };
      }
    }
  }
  return (shard, { offset, skip }) => packWindows(tokensOf(shards[shard]!, offset), window, skip);
};
