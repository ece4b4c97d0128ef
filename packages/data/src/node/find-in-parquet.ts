import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { isAddress, pathOf } from "./byte-source.ts";
import { isFolder, someOf } from "./files-below.ts";
import { filesOfPlaces } from "./files-of-places.ts";
import { type FoundImages, heldOutNames } from "./find-images.ts";
import { parquetRows } from "./parquet-column.ts";
import { type FoundSample, splitSamples } from "./split-samples.ts";

/** Which files there are, and which of their columns are image and label. */
export interface ParquetOptions {
  /**
   * Parquet files, here or by their addresses (`https://…`), folders with such, or several of these; `{00000..00004}`
   * stands for each of these numbers.
   */
  readonly file: string | readonly string[];
  /**
   * Those to judge by. Default: files called test-…, val-… or validation-… of a folder that has such and others, else
   * `testFraction` of the samples, by their files and rows.
   */
  readonly testFile?: string | readonly string[] | undefined;
  /** Column of the images: bytes, or a struct with them under `bytes`. Default: image. */
  readonly image?: string | undefined;
  /** Column of the labels: numbers or texts. Default: label. */
  readonly label?: string | undefined;
}

const cure = "name Parquet files with a column of images";

/** Files to learn from, and those to judge by where these are known. */
export const parquetParts = ({
  file,
  testFile,
}: ParquetOptions): readonly [learnt: string[], held: string[] | undefined] => {
  const files = filesOfPlaces(file, [".parquet"], cure);
  if (testFile !== undefined) return [files, filesOfPlaces(testFile, [".parquet"], cure)];
  const isFolderAlone = typeof file === "string" && !isAddress(file) && isFolder(file);
  const isHeld = (path: string): boolean => heldOutNames.includes(/^[a-z]*/i.exec(basename(path))![0].toLowerCase());
  const held = isFolderAlone ? files.filter(isHeld) : [];
  return held.length === 0 || held.length === files.length
    ? [files, undefined]
    : [files.filter((path) => !isHeld(path)), held];
};

/** Names of the classes that numbers stand for, as Hugging Face's writers say them (`ClassLabel`). */
const namesIn = (notes: ReadonlyMap<string, string>, column: string): readonly string[] | undefined => {
  const text = notes.get("huggingface");
  if (text === undefined) return undefined;
  let written: {
    readonly info?: { readonly features?: Readonly<Record<string, { readonly names?: unknown }>> };
  } | null;
  try {
    written = JSON.parse(text) as typeof written;
  } catch {
    return undefined; // somebody else's note
  }
  const names = written?.info?.features?.[column]?.names;
  return Array.isArray(names) && names.every((name) => typeof name === "string") ? names : undefined;
};

/** The encoded image in a value of the column. */
const imageIn = (value: unknown): Uint8Array | undefined => {
  const bytes = value instanceof Uint8Array ? value : (value as { readonly bytes?: unknown } | null | undefined)?.bytes;
  return bytes instanceof Uint8Array && bytes.length > 0 ? bytes : undefined;
};

/** The label in a value of the column, as a class is called. −1 is none: some test sets keep theirs to themselves. */
const labelIn = (value: unknown, names: readonly string[] | undefined, place: string): string | undefined => {
  if (value instanceof Uint8Array) return new TextDecoder().decode(value) || undefined;
  if (typeof value !== "bigint" && typeof value !== "number") return undefined;
  if (names === undefined) return Number(value) < 0 ? undefined : String(value);
  const name = names[Number(value)];
  if (name === undefined && Number(value) !== -1)
    throw new DataError(`${place} has label ${value}, but the file names ${names.length} classes; correct it`);
  return name;
};

/** What was found in some files. */
interface Rows {
  readonly samples: readonly FoundSample[];
  readonly classes: readonly string[] | undefined;
}

/** A row of an image, with what of it is there. */
interface ImageRow {
  readonly row: number;
  /** Of the file's memory. */
  readonly bytes: Uint8Array | undefined;
  readonly label: string | undefined;
  /** Classes in the order of their numbers, where the file says so. */
  readonly names: readonly string[] | undefined;
}

/** Images in the rows of a file, from one on. @throws DataError where it cannot be read. */
export async function* imageRows(
  path: string,
  { image = "image", label = "label" }: Pick<ParquetOptions, "image" | "label">,
  from = 0,
): AsyncGenerator<ImageRow, void> {
  const groups = parquetRows(path, [image, label], "set image and label to those of images", from);
  for await (const { first, notes, rows } of groups) {
    const names = namesIn(notes, label);
    for (const [i, [encoded, value]] of rows.entries()) {
      const place = `${pathOf(path)}, row ${first + i}`;
      yield { row: first + i, bytes: imageIn(encoded), label: labelIn(value, names, place), names };
    }
  }
}

/** All images of some files; rows without one, or without a label, go to `incomplete`. */
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
          `${pathOf(path)} names other classes than ${pathOf(known.file)} (${someOf(names ?? ["none"])}; ${someOf(known.names ?? ["none"])}); name files of one data set`,
        );
      const name = `row ${row}`;
      if (bytes === undefined || label === undefined) incomplete.push(`${pathOf(path)}, ${name}`);
      // a copy: it would keep a page of the file in memory
      else samples.push({ path, label, bytes: bytes.slice(), entry: { name, begin: 0, sizeBytes: bytes.length } });
    }
  return { samples, classes: known?.names };
};

/**
 * Images in rows of Parquet files, in the layout of Hugging Face's data sets: a column of structs with `bytes`, a
 * column of labels, whose names stand in the file's notes. Rows are read once, and images stay in memory as they are
 * encoded: a row cannot be read but with its whole group.
 *
 * @param testFraction in (0, 1), where no files are there to judge by. With `skipDamaged` rows without an
 * image or a label are left out and counted, instead of giving up.
 * @throws DataError for files that cannot be read, and for parts without a sample.
 */
export const findInParquet = async (
  options: ParquetOptions,
  { testFraction, skipDamaged }: { readonly testFraction: number; readonly skipDamaged: boolean },
): Promise<FoundImages> => {
  const incomplete: string[] = [];
  const [learntFiles, heldFiles] = parquetParts(options);
  const learnt = await rowsIn(learntFiles, options, incomplete);
  const held = heldFiles && (await rowsIn(heldFiles, options, incomplete));
  if (incomplete.length > 0 && !skipDamaged)
    throw new DataError(
      `${incomplete[0]} has no bytes of an image in ${options.image ?? "image"}, or no label in ${options.label ?? "label"}; name the columns with them, or leave such rows out with skipDamaged: true`,
    );
  const where = pathOf([options.file].flat()[0]!);
  const { classes } = learnt;
  return splitSamples({ learnt: learnt.samples, held: held?.samples, where, incomplete, classes }, testFraction);
};
