import { DataError } from "../../errors.ts";
import { joinBytes } from "../../join-bytes.ts";
import { packWindows, type TokenPiece, type Tokens } from "../../streams/pack-windows.ts";
import type { ShardReader } from "../../streams/shard-place.ts";
import type { SampleStream, TextShards } from "../../streams/streamed-records.ts";
import { pathOf } from "../byte-source.ts";
import { LineCutter, mostLineBytes, parseLine } from "../json-lines.ts";
import { loadTokenizer } from "../load-tokenizer.ts";
import { parquetColumn } from "../parquet-column.ts";
import { textEncoding } from "../text-encoding.ts";
import { damagedText, lineEntry, rowEntry, type TextEntry } from "../text-entries.ts";
import { contentOf, formatOf, requireUtf8 } from "../text-format.ts";
import { piecesOf } from "./piecewise.ts";

/** A text, or a piece of one, and where in its shard it begins. */
interface Piece extends TextEntry {
  readonly offset: number;
  /** Whether the text begins with it, and whether it ends so. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** Lines of a file from a byte on, without what ends them, and the byte that each begins with. */
async function* linesOf(
  place: string,
  from: number,
): AsyncGenerator<{ readonly line: Uint8Array; readonly offset: number; readonly isLast: boolean }, void> {
  let offset = from;
  const cutter = new LineCutter(
    () => new DataError(`${pathOf(place)}: the line at byte ${offset} has more than ${mostLineBytes} bytes; cut it`),
  );
  for await (const bytes of piecesOf(place, from, contentOf(place)))
    for (const line of cutter.cut(bytes)) {
      yield { line, offset, isLast: false };
      offset += line.length + 1;
    }
  yield { line: cutter.rest(), offset, isLast: true };
}

async function* linePieces(place: string, field: string, from: number): AsyncGenerator<Piece, void> {
  for await (const { line, offset } of linesOf(place, from)) {
    const parsed = parseLine(line);
    if (parsed === undefined) continue;
    yield { ...lineEntry(`${pathOf(place)}, byte ${offset}`, parsed, field), offset, isFirst: true, isLast: true };
  }
}

async function* rowPieces(place: string, field: string, from: number): AsyncGenerator<Piece, void> {
  for await (const [row, value] of parquetColumn(place, field, from))
    yield { ...rowEntry(place, row, value, field), offset: row, isFirst: true, isLast: true };
}

/** A text is cut behind the first line that ends after so many bytes of it. */
const cutAfterBytes = 2 ** 16;

async function* textPieces(place: string, from: number): AsyncGenerator<Piece, void> {
  const newline = Uint8Array.of(10);
  let begin = from;
  let lines: Uint8Array[] = [];
  for await (const { line, offset, isLast } of linesOf(place, from)) {
    lines.push(line);
    if (!isLast) lines.push(newline);
    const end = offset + line.length + 1;
    if (!isLast && end - begin < cutAfterBytes) continue;
    const text = joinBytes(...lines);
    requireUtf8(pathOf(place), text, begin);
    yield { place: pathOf(place), text, offset: begin, isFirst: begin === 0, isLast };
    [lines, begin] = [[], end];
  }
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
  const { encode, separator: end } = textEncoding(
    separator,
    tokenizer && loadTokenizer(tokenizer.place, tokenizer.from),
  );
  async function* tokensOf(place: string, from: number): AsyncGenerator<TokenPiece, void> {
    for await (const piece of piecesIn(place, field, from)) {
      const { text, fault, offset, isFirst, isLast } = piece;
      if (text === undefined) {
        if (!skipDamaged) throw damagedText(piece.place, fault!);
        left(piece.place, fault!);
      } else if (text.length > 0 || !isFirst) {
        const tokens = encode(text);
        yield { offset, tokens: isLast ? joinTokens(tokens, end) : tokens };
      }
    }
  }
  return (shard, { offset, skip }) => packWindows(tokensOf(shards[shard]!, offset), window, skip);
};
