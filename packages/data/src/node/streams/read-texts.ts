import { DataError } from "../../errors.ts";
import { joinBytes } from "../../join-bytes.ts";
import { packWindows, type TokenPiece, type Tokens } from "../../streams/pack-windows.ts";
import type { ShardReader } from "../../streams/shard-position.ts";
import type { SampleStream, TextShards } from "../../streams/streamed-records.ts";
import { pathOf } from "../byte-source.ts";
import { LineCutter, maxLineBytes, parseLine } from "../json-lines.ts";
import { loadTokenizer } from "../load-tokenizer.ts";
import { parquetColumn } from "../parquet-column.ts";
import { textEncoding } from "../text-encoding.ts";
import { damagedText, lineEntry, rowEntry, type TextEntry } from "../text-entries.ts";
import { contentOf, formatOf, requireUtf8 } from "../text-format.ts";
import { piecesOf } from "./piecewise.ts";

/** A complete text or a part of a text, with its offset in the shard. */
interface Piece extends TextEntry {
  readonly offset: number;
  /** Whether this is the first part of its text. Likewise, `isLast`: whether this is the last part. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** Yields the lines of a file from an offset, without newlines, each with the offset of the line. */
async function* linesOf(
  location: string,
  from: number,
): AsyncGenerator<{ readonly line: Uint8Array; readonly offset: number; readonly isLast: boolean }, void> {
  let offset = from;
  const cutter = new LineCutter(
    () =>
      new DataError(`${pathOf(location)}: the line at byte ${offset} has more than ${maxLineBytes} bytes; split it`),
  );
  for await (const bytes of piecesOf(location, from, contentOf(location)))
    for (const line of cutter.cut(bytes)) {
      yield { line, offset, isLast: false };
      offset += line.length + 1;
    }
  yield { line: cutter.rest(), offset, isLast: true };
}

async function* linePieces(location: string, field: string, from: number): AsyncGenerator<Piece, void> {
  for await (const { line, offset } of linesOf(location, from)) {
    const parsed = parseLine(line);
    if (parsed === undefined) continue;
    yield { ...lineEntry(`${pathOf(location)}, byte ${offset}`, parsed, field), offset, isFirst: true, isLast: true };
  }
}

async function* rowPieces(location: string, field: string, from: number): AsyncGenerator<Piece, void> {
  for await (const [row, value] of parquetColumn(location, field, from))
    yield { ...rowEntry(location, row, value, field), offset: row, isFirst: true, isLast: true };
}

/**
 * Minimum length in bytes of a part of a long text. The text is split after the first line that reaches this length.
 */
const cutAfterBytes = 2 ** 16;

async function* textPieces(location: string, from: number): AsyncGenerator<Piece, void> {
  const newline = Uint8Array.of(10);
  let begin = from;
  let lines: Uint8Array[] = [];
  for await (const { line, offset, isLast } of linesOf(location, from)) {
    lines.push(line);
    if (!isLast) lines.push(newline);
    const end = offset + line.length + 1;
    if (!isLast && end - begin < cutAfterBytes) continue;
    const text = joinBytes(...lines);
    requireUtf8(pathOf(location), text, begin);
    yield { location: pathOf(location), text, offset: begin, isFirst: begin === 0, isLast };
    [lines, begin] = [[], end];
  }
}

const piecesIn = (location: string, field: string, from: number): AsyncGenerator<Piece, void> => {
  switch (formatOf(location)) {
    case "lines":
      return linePieces(location, field, from);
    case "rows":
      return rowPieces(location, field, from);
    case "text":
      return textPieces(location, from);
  }
};

const joinTokens = (one: Tokens, other: Tokens): Tokens => {
  const length = one.length + other.length;
  const row = one instanceof Uint8Array ? new Uint8Array(length) : new Int32Array(length);
  row.set(one);
  row.set(other, one.length);
  return row;
};

/**
 * Returns a reader that concatenates the texts in a shard, with a separator after each text, and cuts them into
 * windows. Each text is encoded separately. A long text file is encoded in parts that end at newlines.
 *
 * @param reportSkipped Called for each unusable text that is skipped.
 */
export const textReader = (
  { shards, skipDamaged }: Pick<SampleStream, "shards" | "skipDamaged">,
  { field, separator, tokenizer, window }: TextShards,
  reportSkipped: (location: string, why: string) => void,
): ShardReader<Tokens> => {
  const { encode, separator: end } = textEncoding(
    separator,
    tokenizer && loadTokenizer(tokenizer.place, tokenizer.from),
  );
  async function* tokensOf(location: string, from: number): AsyncGenerator<TokenPiece, void> {
    for await (const piece of piecesIn(location, field, from)) {
      const { text, fault, offset, isFirst, isLast } = piece;
      if (text === undefined) {
        if (!skipDamaged) throw damagedText(piece.location, fault!);
        reportSkipped(piece.location, fault!);
      } else if (text.length > 0 || !isFirst) {
        const tokens = encode(text);
        yield { offset, tokens: isLast ? joinTokens(tokens, end) : tokens };
      }
    }
  }
  return (shard, { offset, skip }) => packWindows(tokensOf(shards[shard]!, offset), window, skip);
};
