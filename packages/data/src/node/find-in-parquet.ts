import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { isAddress, pathOf } from "./byte-source.ts";
import { isFolder, someOf } from "./files-below.ts";
import { filesAtLocations } from "./files-at-locations.ts";
import { type FoundImages, heldOutNames } from "./find-images.ts";
import { parquetRows } from "./parquet-column.ts";
import { type FoundSample, splitSamples } from "./split-samples.ts";

/** Location of Parquet files, and the names of their image and label columns. */
export interface ParquetOptions {
  /**
   * Location of Parquet files: a path, a URL (`https://…`), a folder, or a list of locations. `{00000..00004}` in a
   * path or URL expands to each number.
   */
  readonly file: string | readonly string[];
  /**
   * Location of the test files. Default: files named test-…, val-…, valid-… or validation-…, if `file` is a folder that
   * also contains other files. Without test files, `testFraction` of the samples is held out, chosen by file and row.
   */
  readonly testFile?: string | readonly string[] | undefined;
  /** Column of the images, which contains bytes or a struct with a field `bytes`. Default: image. */
  readonly image?: string | undefined;
  /** Column of the labels, which contains numbers or text. Default: label. */
  readonly label?: string | undefined;
}

const cure = "give Parquet files with a column of images";

/** Returns the training files, and the test files if they are separate. */
export const parquetParts = ({
  file,
  testFile,
}: ParquetOptions): readonly [training: string[], heldOut: string[] | undefined] => {
  const files = filesAtLocations(file, [".parquet"], cure);
  if (testFile !== undefined) return [files, filesAtLocations(testFile, [".parquet"], cure)];
  const isFolderAlone = typeof file === "string" && !isAddress(file) && isFolder(file);
  const isTestFile = (path: string): boolean =>
    heldOutNames.includes(/^[a-z]*/i.exec(basename(path))![0].toLowerCase());
  const heldOut = isFolderAlone ? files.filter(isTestFile) : [];
  return heldOut.length === 0 || heldOut.length === files.length
    ? [files, undefined]
    : [files.filter((path) => !isTestFile(path)), heldOut];
};

/**
 * Returns the class names of numeric labels. Hugging Face's writers store the names in the metadata (`ClassLabel`).
 * Returns undefined if the metadata contains no names.
 */
const namesIn = (notes: ReadonlyMap<string, string>, column: string): readonly string[] | undefined => {
  const text = notes.get("huggingface");
  if (text === undefined) return undefined;
  let written: {
    readonly info?: { readonly features?: Readonly<Record<string, { readonly names?: unknown }>> };
  } | null;
  try {
    written = JSON.parse(text) as typeof written;
  } catch {
    return undefined; // metadata of another program
  }
  const names = written?.info?.features?.[column]?.names;
  return Array.isArray(names) && names.every((name) => typeof name === "string") ? names : undefined;
};

/** Returns the encoded image in a value of the image column. */
const imageIn = (value: unknown): Uint8Array | undefined => {
  const bytes = value instanceof Uint8Array ? value : (value as { readonly bytes?: unknown } | null | undefined)?.bytes;
  return bytes instanceof Uint8Array && bytes.length > 0 ? bytes : undefined;
};

/**
 * Returns the label in a value of the label column, as a class name. Returns undefined for −1, which marks samples
 * without a label in some test sets.
 */
const labelIn = (value: unknown, names: readonly string[] | undefined, location: string): string | undefined => {
  if (value instanceof Uint8Array) return new TextDecoder().decode(value) || undefined;
  if (typeof value !== "bigint" && typeof value !== "number") return undefined;
  if (names === undefined) return Number(value) < 0 ? undefined : String(value);
  const name = names[Number(value)];
  if (name === undefined && Number(value) !== -1)
    throw new DataError(`${location} has label ${value}, but the file lists ${names.length} classes; correct it`);
  return name;
};

/** Samples and class names that were found in a set of Parquet files. */
interface Rows {
  readonly samples: readonly FoundSample[];
  readonly classes: readonly string[] | undefined;
}

/** A row with its image and label, which are undefined if missing. */
interface ImageRow {
  readonly row: number;
  /** Encoded image, as a view of the memory of the file. */
  readonly bytes: Uint8Array | undefined;
  readonly label: string | undefined;
  /** Class names in the order of labels. Undefined: the file does not list them. */
  readonly names: readonly string[] | undefined;
}

/** Yields the image rows of a file, from row `from`. @throws DataError if the file cannot be read. */
export async function* imageRows(
  path: string,
  { image = "image", label = "label" }: Pick<ParquetOptions, "image" | "label">,
  from = 0,
): AsyncGenerator<ImageRow, void> {
  const groups = parquetRows(path, [image, label], "set image and label to the columns of the images", from);
  for await (const { first, notes, rows } of groups) {
    const names = namesIn(notes, label);
    for (const [i, [encoded, value]] of rows.entries()) {
      const location = `${pathOf(path)}, row ${first + i}`;
      yield { row: first + i, bytes: imageIn(encoded), label: labelIn(value, names, location), names };
    }
  }
}

/** Returns all image rows of some files. Appends the locations of rows without an image or a label to `incomplete`. */
export const rowsIn = async (
  files: readonly string[],
  options: Pick<ParquetOptions, "image" | "label">,
  incomplete: string[],
): Promise<Rows> => {
  const samples: FoundSample[] = [];
  let known: { readonly file: string; readonly names: readonly string[] | undefined } | undefined;
  for (const path of files)
    for await (const { row, bytes, label, names } of imageRows(path, options)) {
      known ??= { file: path, names };
      if (known.names !== names && JSON.stringify(known.names) !== JSON.stringify(names))
        throw new DataError(
          `${pathOf(path)} lists other classes than ${pathOf(known.file)} (${someOf(names ?? ["none"])}; ${someOf(known.names ?? ["none"])}); give files of one data set`,
        );
      const name = `row ${row}`;
      if (bytes === undefined || label === undefined) incomplete.push(`${pathOf(path)}, ${name}`);
      // copied, because a view would keep a page of the file in memory
      else samples.push({ path, label, bytes: bytes.slice(), entry: { name, begin: 0, sizeBytes: bytes.length } });
    }
  return { samples, classes: known?.names };
};

/**
 * Finds images in rows of Parquet files, in the layout of Hugging Face's data sets: a column of structs with `bytes`,
 * and a column of labels, whose names are in the file's metadata. Each row is read once, and the encoded images stay in
 * memory, because reading a single row requires reading its complete row group.
 *
 * @param testFraction Fraction to hold out, in (0, 1), if there are no test files. With `skipDamaged`, rows without an
 * image or a label are excluded and counted instead of causing an error.
 * @throws DataError if a file cannot be read, or if the training part or the held-out part has no samples.
 */
export const findInParquet = async (
  options: ParquetOptions,
  { testFraction, skipDamaged }: { readonly testFraction: number; readonly skipDamaged: boolean },
): Promise<FoundImages> => {
  const incomplete: string[] = [];
  const [trainingFiles, testFiles] = parquetParts(options);
  const training = await rowsIn(trainingFiles, options, incomplete);
  const heldOut = testFiles && (await rowsIn(testFiles, options, incomplete));
  if (incomplete.length > 0 && !skipDamaged)
    throw new DataError(
      `${incomplete[0]} has no image bytes in column ${options.image ?? "image"}, or no label in column ${options.label ?? "label"}; set image and label to the right columns, or skip such rows with skipDamaged: true`,
    );
  const where = pathOf([options.file].flat()[0]!);
  const { classes } = training;
  return splitSamples(
    { training: training.samples, heldOut: heldOut?.samples, where, incomplete, classes },
    testFraction,
  );
};
