import type { FileMetaData } from "hyparquet";
import { DataError } from "../errors.ts";
import { openSource } from "./byte-source.ts";
import { readParquetMetadata, readParquetRows } from "./parquet-thread.ts";
import { requireMemory } from "./require-memory.ts";

const cure = "give an intact Parquet file";

/** Memory per row in bytes, in addition to the row's content in the file. */
const rowBytes = 32;

/**
 * Returns the names of the top-level columns, from a schema that is a tree in depth-first order. Returns undefined if
 * the schema is damaged.
 */
const columnsOf = ({ schema }: FileMetaData): string[] | undefined => {
  const names: string[] = [];
  const childrenLeft = [schema[0]?.num_children ?? 0];
  for (let at = 1; childrenLeft.length > 0; ) {
    if (childrenLeft.at(-1)! <= 0) {
      childrenLeft.pop();
      continue;
    }
    childrenLeft[childrenLeft.length - 1]!--;
    const element = schema[at++];
    if (element === undefined) return undefined;
    if (childrenLeft.length === 1) names.push(element.name);
    childrenLeft.push(element.num_children ?? 0);
  }
  return names;
};

/** Consecutive rows of a Parquet file from one row group. */
export interface ParquetGroup {
  /** Index of the first row in the file, from 0. */
  readonly first: number;
  /** Key-value metadata of the file. */
  readonly notes: ReadonlyMap<string, string>;
  /** Values of each row, one per column; text as UTF-8 bytes. */
  readonly rows: readonly (readonly unknown[])[];
}

/**
 * Yields the values of some columns of a Parquet file, one row group at a time. Over HTTP, only the parts of the file
 * that contain these columns are read. Memory: these columns of one row group.
 *
 * @param cureOfAbsent Suggested fix in the error for a missing column.
 * @param from Index of the first row. Default: 0.
 * @throws DataError if the file cannot be read, is damaged, or lacks a column.
 */
export async function* parquetRows(
  location: string,
  wanted: readonly string[],
  cureOfAbsent: string,
  from = 0,
): AsyncGenerator<ParquetGroup, void> {
  const source = await openSource(location, cure, "parquet");
  try {
    const { name } = source;
    const metadata = await readParquetMetadata(source);
    const columns = columnsOf(metadata);
    if (columns === undefined) throw new DataError(`${name} has a damaged schema; ${cure}`);
    const absent = wanted.find((column) => !columns.includes(column));
    if (absent !== undefined)
      throw new DataError(
        `${name} has no column ${absent}; its columns: ${columns.slice(0, 5).join(", ")}; ${cureOfAbsent}`,
      );
    const notes = new Map((metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value ?? ""]));
    let groupFirst = 0;
    for (const group of metadata.row_groups) {
      const numRows = Number(group.num_rows);
      if (!(Number.isSafeInteger(numRows) && numRows >= 0))
        throw new DataError(`${name} has a row group at row ${groupFirst} with ${numRows} rows; ${cure}`);
      const end = groupFirst + numRows;
      const first = Math.max(groupFirst, from);
      groupFirst = end;
      if (end <= from || numRows === 0) continue;
      requireMemory(rowBytes * numRows, `the ${numRows} rows of a group of ${name}`, "write smaller row groups");
      const rows = await readParquetRows(source, {
        metadata: { ...metadata, row_groups: [group], key_value_metadata: [] },
        columns: wanted,
        rowStart: first - (end - numRows),
        rowEnd: numRows,
      });
      if (rows.length !== end - first)
        throw new DataError(`${name} holds only ${rows.length} of ${end - first} rows from row ${first}; ${cure}`);
      yield { first, notes, rows };
    }
  } finally {
    source.close();
  }
}

/** Yields the values of one column, each with its row index; see `parquetRows`. */
export async function* parquetColumn(
  location: string,
  column: string,
  from = 0,
): AsyncGenerator<readonly [row: number, value: unknown], void> {
  for await (const { first, rows } of parquetRows(location, [column], "set field to the column of the text", from))
    for (const [i, [value]] of rows.entries()) yield [first + i, value];
}
