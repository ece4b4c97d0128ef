import { dirname, extname, resolve } from "node:path";
import { type CsvError, type Info, parse } from "csv-parse/sync";
import { DataError } from "../errors.ts";
import { readText } from "./file-pieces.ts";
import { classesOf, type FoundImages, heldOutNames, isHeldOutByPath, type ImageFile, mixed } from "./find-images.ts";
import { jsonLines } from "./json-lines.ts";
import { lineEndings } from "./text-format.ts";

/** A row of a manifest, with its values by column name. */
interface Row {
  /** Location of the row for errors, `file:line`. */
  readonly location: string;
  readonly line: number;
  readonly values: Readonly<Record<string, unknown>>;
}

const cure = "give a .csv or .jsonl file with path and label of each image";

/** Maximum number of columns. A row with more columns would need more memory than its image. */
const maxColumns = 1000;

function* csvRows(file: string): Generator<Row, void> {
  const text = readText(file, cure, "csv");
  const columns = (names: string[]): string[] => {
    if (names.length > maxColumns)
      throw new DataError(
        `${file}:1: the first line has ${names.length} columns, but at most ${maxColumns} are supported; remove unused columns`,
      );
    const missing = ["path", "label"].find((name) => !names.includes(name));
    if (missing !== undefined)
      throw new DataError(
        `${file}:1: the first line has the columns ${names.slice(0, 6).join(", ")}, but no ${missing}; begin the file with a line path,label or path,label,split`,
      );
    const duplicate = ["path", "label", "split"].find((name) => names.indexOf(name) !== names.lastIndexOf(name));
    if (duplicate !== undefined)
      throw new DataError(
        `${file}:1: the first line has the column ${duplicate} twice, but column names must be unique; rename one of them`,
      );
    return names;
  };
  let rows: { readonly record: Record<string, string>; readonly info: Info }[];
  try {
    rows = parse(text, { bom: true, columns, info: true, skip_empty_lines: true }) as unknown as typeof rows;
  } catch (error) {
    if (error instanceof DataError) throw error;
    const { lines, message } = error as CsvError & { readonly lines?: number };
    throw new DataError(`${file}:${lines ?? 1}: invalid CSV (${message.split("\n")[0]}); correct the line`, {
      cause: error,
    });
  }
  for (const { record, info } of rows) yield { location: `${file}:${info.lines}`, line: info.lines, values: record };
}

function* jsonRows(file: string): Generator<Row, void> {
  for (const { location, line, value, fault } of jsonLines(file, cure)) {
    if (value === undefined)
      throw new DataError(`${location}: the line ${fault}; write {"path": …, "label": …} on each line`);
    yield { location, line, values: value };
  }
}

/** Returns a text value of a row. @throws DataError if the value is missing. */
const textIn = ({ location, values }: Row, name: string): string => {
  const value = values[name];
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string" || text.trim() === "")
    throw new DataError(
      `${location}: ${name} is ${value === undefined ? "missing" : JSON.stringify(value).slice(0, 40)}, but must be a text; add it`,
    );
  return text;
};

/** Returns whether the image of a row is a test image. Returns undefined if the row has no `split`. */
const isHeldOut = (row: Row): boolean | undefined => {
  if (row.values["split"] === undefined) return undefined;
  const split = textIn(row, "split").toLowerCase();
  if (split === "train") return false;
  if (heldOutNames.includes(split)) return true;
  throw new DataError(
    `${row.location}: split is ${JSON.stringify(split.slice(0, 40))}, but must be train, ${heldOutNames.join(" or ")}; correct it`,
  );
};

/**
 * Reads a list of images: a `.csv` file (RFC 4180) with column names in its first line, or a `.jsonl` file, with the
 * fields `path`, relative to the folder of the file, `label` and optionally `split`: train or test (or val,
 * validation). Without `split`, a stratified part is held out by path (see `holdOutByName`).
 *
 * @param testFraction Fraction to hold out, in (0, 1), if no row has a `split`.
 * @throws DataError if a line is damaged, if an image is listed twice, or if the training part or the held-out part has
 * no images.
 */
export const readManifest = (file: string, testFraction: number): FoundImages => {
  const folder = dirname(file);
  const rows = [...(lineEndings.includes(extname(file).toLowerCase()) ? jsonRows(file) : csvRows(file))];
  if (rows.length === 0) throw new DataError(`${file} lists no images; ${cure}`);
  const hasSplit = rows[0]!.values["split"] !== undefined;
  const classes = classesOf(new Set(rows.map((row) => textIn(row, "label"))));
  const numbers = new Map(classes.map((name, number) => [name, number]));
  const seen = new Map<string, string>();
  const images: ImageFile[] = [];
  const isTestByRow: (boolean | undefined)[] = [];
  for (const row of rows) {
    const path = resolve(folder, textIn(row, "path"));
    const before = seen.get(path);
    if (before !== undefined)
      throw new DataError(`${row.location}: ${path} is already listed at ${before}; remove one of the lines`);
    seen.set(path, row.location);
    const isTest = isHeldOut(row);
    if ((isTest !== undefined) !== hasSplit)
      throw new DataError(
        `${row.location}: this image has ${hasSplit ? "no" : "a"} split, but the first image has ${hasSplit ? "one" : "none"}; give a split to all images or to none`,
      );
    isTestByRow.push(isTest);
    images.push({ path, label: numbers.get(textIn(row, "label"))!, line: row.line });
  }
  const isTest = hasSplit ? isTestByRow : isHeldOutByPath(images, folder, testFraction);
  const [train, test] = [images.filter((_, i) => !isTest[i]), images.filter((_, i) => isTest[i])];
  if (classes.length < 2)
    throw new DataError(
      `${file}: all ${rows.length} images are of class ${classes[0]}; list images of at least two classes`,
    );
  if (train.length === 0 || test.length === 0)
    throw new DataError(
      `${file}: of ${rows.length} images ${train.length} are for training and ${test.length} for testing; list more images, or give each a split, train or test`,
    );
  return { classes, train: mixed(folder, train), test: mixed(folder, test), others: [], manifest: file };
};
