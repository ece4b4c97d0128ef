import type { AsyncBuffer, FileMetaData } from "hyparquet";
import { DataError } from "../errors.ts";
import { type ByteSource, openSource } from "./byte-source.ts";

const cure = "name a Parquet file that is whole";

const bufferOf = (source: ByteSource): AsyncBuffer => ({
  byteLength: source.sizeBytes,
  slice: async (begin, end = source.sizeBytes) => {
    // from the end, as slices of arrays count
    const from = begin < 0 ? Math.max(0, source.sizeBytes + begin) : begin;
    return (await source.read(from, Math.min(end, source.sizeBytes))).buffer;
  },
});

/** What a reader says is told in our words; errors of ours are as they are. */
const explained = async <T>(name: string, work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    if (error instanceof DataError) throw error;
    const why = (error as Error).message.split("\n")[0]!;
    throw new DataError(`${name} is no Parquet file that can be read (${why}); ${cure}`, { cause: error });
  }
};

const columnsOf = ({ schema }: FileMetaData): string[] => {
  // a tree in a row: each element is followed by those below it
  const names: string[] = [];
  let at = 1;
  const pass = (): void => {
    for (let left = schema[at++]!.num_children ?? 0; left > 0; left--) pass();
  };
  for (let left = schema[0]!.num_children ?? 0; left > 0; left--) {
    names.push(schema[at]!.name);
    pass();
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
  // megabytes of readers that most runs have no use for
  const [{ parquetMetadataAsync, parquetRead }, { compressors }] = await Promise.all([
    import("hyparquet"),
    import("hyparquet-compressors"),
  ]);
  const source = await openSource(place, cure, "parquet");
  try {
    const { name } = source;
    const file = bufferOf(source);
    const metadata = await explained(name, parquetMetadataAsync(file));
    const columns = columnsOf(metadata);
    const absent = wanted.find((column) => !columns.includes(column));
    if (absent !== undefined)
      throw new DataError(`${name} has no column ${absent}, but ${columns.slice(0, 5).join(", ")}; ${cureOfAbsent}`);
    const notes = new Map((metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value ?? ""]));
    let first = 0;
    for (const group of metadata.row_groups) {
      const end = first + Number(group.num_rows);
      if (end <= from) {
        first = end;
        continue;
      }
      first = Math.max(first, from);
      let rows: readonly (readonly unknown[])[] = [];
      await explained(
        name,
        parquetRead({
          file,
          metadata,
          columns: [...wanted],
          rowStart: first,
          rowEnd: end,
          compressors,
          parsers: { stringFromBytes: (bytes: Uint8Array | undefined) => bytes },
          onComplete: (all) => {
            rows = all;
          },
        }),
      );
      if (rows.length !== end - first)
        throw new DataError(`${name} holds ${rows.length} rows of ${end - first} from row ${first} on; ${cure}`);
      yield { first, notes, rows };
      first = end;
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
