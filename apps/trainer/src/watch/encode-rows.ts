import type { MetricTable } from "./metric-table.ts";

/** Rows of one type in a message of `/api/rows`. */
export interface RowsHeader {
  readonly type: string;
  /** The first row of the message. */
  readonly from: number;
  /** How many rows follow. */
  readonly count: number;
  /** Names of their quantities, in the order of their columns. */
  readonly names: readonly string[];
}

export interface MessageHeader {
  readonly generation: number;
  readonly tables: readonly RowsHeader[];
}

/**
 * What a page has not got yet, as bytes: the length of a JSON header as a 32-bit number, the header, zeros up to a
 * multiple of 8; then for each table steps and times as 64-bit numbers, and each quantity as 32-bit numbers, padded to
 * a multiple of 8. All little-endian.
 *
 * @param known rows that the page has, by type.
 */
export const encodeRows = (
  table: MetricTable,
  generation: number,
  known: ReadonlyMap<string, number>,
): Uint8Array[] => {
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
  const parts: Uint8Array[] = [head];
  for (const { rows, from, count, names } of tables) {
    for (const array of [rows.steps, rows.times]) parts.push(bytesOf(array.slice(from, from + count)));
    for (const name of names) {
      const values = new Float32Array(Math.ceil(count / 2) * 2).fill(Number.NaN);
      values.set(rows.columns.get(name)!.subarray(from, from + count));
      parts.push(bytesOf(values));
    }
  }
  return parts;
};

const bytesOf = ({ buffer, byteOffset, byteLength }: Float64Array | Float32Array): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
