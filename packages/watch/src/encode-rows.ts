import type { MetricTable } from "@skein/run-files";

/** Header of a table in a message of `/api/rows`: the rows of one line type. */
export interface RowsHeader {
  readonly type: string;
  /** Index of the first row in the message. */
  readonly from: number;
  /** Number of rows in the message. */
  readonly count: number;
  /** Names of the quantities, in column order. */
  readonly names: readonly string[];
}

export interface MessageHeader {
  readonly generation: number;
  readonly tables: readonly RowsHeader[];
}

const pieceBytes = 2 ** 16;
/** Number of rows whose steps (f64) fill one chunk. */
const pieceRows = pieceBytes / Float64Array.BYTES_PER_ELEMENT;

/**
 * Encodes the rows that a page does not have yet, as chunks of bytes. The message begins with the length of a JSON
 * header as a 32-bit number, the header, and zeros up to a multiple of 8 bytes. Then each table stores steps and times
 * as 64-bit numbers, and each quantity as 32-bit numbers padded to a multiple of 8 bytes. All numbers are
 * little-endian. Each chunk is encoded when it is requested, and the table may grow between two chunks.
 *
 * @param known Number of rows that the page has, by line type.
 * @param isCurrent Returns whether all rows still exist.
 * @throws Error if rows have been removed.
 */
export const encodeRows = (
  table: MetricTable,
  generation: number,
  known: ReadonlyMap<string, number>,
  isCurrent: () => boolean = () => true,
): Generator<Uint8Array, void> => packed(partsOf(table, generation, known, isCurrent));

const partsOf = function* (
  table: MetricTable,
  generation: number,
  known: ReadonlyMap<string, number>,
  isCurrent: () => boolean,
): Generator<Uint8Array, void> {
  const tables = [...table.byType]
    .map(([type, rows]) => {
      const from = Math.min(rows.length, known.get(type) ?? 0);
      return { type, rows, from, count: rows.length - from, names: [...rows.columns.keys()] };
    })
    .filter(({ count }) => count > 0);
  const header: MessageHeader = {
    generation,
    tables: tables.map(({ type, from, count, names }) => ({ type, from, count, names })),
  };
  const text = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(Math.ceil((4 + text.length) / 8) * 8);
  head.writeUInt32LE(text.length);
  text.copy(head, 4);
  yield head;
  for (const { rows, from, count, names } of tables) {
    // Arrays are looked up again for each chunk, because they are replaced when they grow.
    const arrays = [() => rows.steps, () => rows.times, ...names.map((name) => () => rows.columns.get(name)!)];
    for (const array of arrays)
      for (let row = 0; row < count; row += pieceRows) {
        if (!isCurrent()) throw new Error("rows of the run have been replaced");
        yield bytesOf(array().subarray(from + row, from + Math.min(count, row + pieceRows)), count - row);
      }
  }
};

/**
 * Encodes up to one chunk of a column, padded with NaN.
 *
 * @param left Number of rows up to the end of the column. `values` may have fewer rows, if the column is shorter than
 * the table.
 */
const bytesOf = (values: Float64Array | Float32Array, left: number): Uint8Array => {
  const count = Math.min(left, pieceRows);
  const whole = values instanceof Float64Array ? new Float64Array(count) : new Float32Array(Math.ceil(count / 2) * 2);
  whole.fill(Number.NaN).set(values);
  return new Uint8Array(whole.buffer);
};

/** Combines byte arrays into chunks of equal length, because a table may have thousands of short columns. */
const packed = function* (parts: Iterable<Uint8Array>): Generator<Uint8Array, void> {
  let [piece, filled] = [new Uint8Array(pieceBytes), 0];
  for (const part of parts)
    for (let at = 0; at < part.length; ) {
      const some = part.subarray(at, at + pieceBytes - filled);
      piece.set(some, filled);
      at += some.length;
      filled += some.length;
      if (filled < pieceBytes) continue;
      yield piece;
      [piece, filled] = [new Uint8Array(pieceBytes), 0];
    }
  yield piece.subarray(0, filled);
};
