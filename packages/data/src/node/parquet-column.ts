import type { FileMetaData } from "hyparquet";
import { DataError } from "../errors.ts";
import { openSource } from "./byte-source.ts";
import { readParquetMetadata, readParquetRows } from "./parquet-thread.ts";
import { requireMemory } from "./require-memory.ts";

const cure = "name a Parquet file that is whole";

/** Memory of a row, beside what the file holds of it. */
const rowBytes = 32;

/** Names of the columns; undefined if the schema is damaged. It is a tree in a row: elements follow the one above. */
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

/** Some rows of a Parquet file that lie together in it. */
export interface ParquetGroup {
  /** Which row of the file the first of them is, from 0. */
  readonly first: number;
  /** Texts that the writer put beside all rows, by their keys. */
  readonly notes: ReadonlyMap<string, string>;
  /** A value for each column; texts as their bytes of UTF-8. */
  readonly rows: readonly (readonly unknown[])[];
}

/**
 * The values of some columns of a Parquet file, a group of rows at a time. By address only the parts with these columns
 * are fetched.
 *
 * @param cureOfAbsent what to do about a column that is not there.
 * @param from which row to begin with. Default: the first.
 * Memory: the columns in one group of rows.
 * @throws DataError for a file that cannot be read, is damaged, or has no such column.
 */
export async function* parquetRows(
  place: string,
  wanted: readonly string[],
  cureOfAbsent: string,
  from = 0,
): AsyncGenerator<ParquetGroup, void> {
  const source = await openSource(place, cure, "parquet");
  try {
    const { name } = source;
    const metadata = await readParquetMetadata(source);
    const columns = columnsOf(metadata);
    if (columns === undefined) throw new DataError(`${name} has a damaged schema; ${cure}`);
    const absent = wanted.find((column) => !columns.includes(column));
    if (absent !== undefined)
      throw new DataError(`${name} has no column ${absent}, but ${columns.slice(0, 5).join(", ")}; ${cureOfAbsent}`);
    const notes = new Map((metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value ?? ""]));
    let groupFirst = 0;
    for (const group of metadata.row_groups) {
      const numRows = Number(group.num_rows);
      if (!(Number.isSafeInteger(numRows) && numRows >= 0))
        throw new DataError(`${name} says that rows from ${groupFirst} on are ${numRows}; ${cure}`);
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
        throw new DataError(`${name} holds ${rows.length} rows of ${end - first} from row ${first} on; ${cure}`);
      yield { first, notes, rows };
    }
  } finally {
    source.close();
  }
}

/** The values of one column, with their rows, as `parquetRows` gives them. */
export async function* parquetColumn(
  place: string,
  column: string,
  from = 0,
): AsyncGenerator<readonly [row: number, value: unknown], void> {
  for await (const { first, rows } of parquetRows(place, [column], "set field to the one with the text", from))
    for (const [i, [value]] of rows.entries()) yield [first + i, value];
}
