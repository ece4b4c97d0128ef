import { dirname, extname, resolve } from "node:path";
import { type CsvError, type Info, parse } from "csv-parse/sync";
import { DataError } from "../errors.ts";
import { readText } from "./file-pieces.ts";
import { classesOf, type FoundImages, heldOutNames, heldOutOf, type ImageFile, mixed } from "./find-images.ts";
import { jsonLines } from "./json-lines.ts";
import { lineEndings } from "./text-format.ts";

/** A row of a manifest as it stands there. */
interface Row {
  /** `file:line`. */
  readonly place: string;
  readonly line: number;
  readonly values: Readonly<Record<string, unknown>>;
}

const cure = "name a .csv or .jsonl with path and label of each image";

/** A row of more would take more memory than its image. */
const mostColumns = 1000;

function* csvRows(file: string): Generator<Row, void> {
  const text = readText(file, cure, "csv");
  const columns = (names: string[]): string[] => {
    if (names.length > mostColumns)
      throw new DataError(
        `${file}:1: the first line names ${names.length} columns, but at most ${mostColumns} are read; leave out those that nobody needs`,
      );
    const missing = ["path", "label"].find((name) => !names.includes(name));
    if (missing !== undefined)
      throw new DataError(
        `${file}:1: the first line names the columns ${names.slice(0, 6).join(", ")}, but no ${missing}; begin the file with a line path,label or path,label,split`,
      );
    const twice = ["path", "label", "split"].find((name) => names.indexOf(name) !== names.lastIndexOf(name));
    if (twice !== undefined)
      throw new DataError(
        `${file}:1: the first line names the column ${twice} twice, and a row can have but one; give the other another name`,
      );
    return names;
  };
  let rows: { readonly record: Record<string, string>; readonly info: Info }[];
  try {
    rows = parse(text, { bom: true, columns, info: true, skip_empty_lines: true }) as unknown as typeof rows;
  } catch (error) {
    if (error instanceof DataError) throw error;
    const { lines, message } = error as CsvError & { readonly lines?: number };
    throw new DataError(`${file}:${lines ?? 1}: no valid CSV (${message.split("\n")[0]}); correct the line`, {
      cause: error,
    });
  }
  for (const { record, info } of rows) yield { place: `${file}:${info.lines}`, line: info.lines, values: record };
}

function* jsonRows(file: string): Generator<Row, void> {
  for (const { place, line, value, fault } of jsonLines(file, cure)) {
    if (value === undefined)
      throw new DataError(`${place}: the line ${fault}; write {"path": …, "label": …} on each line`);
    yield { place, line, values: value };
  }
}

/** A text of a row. @throws DataError for none. */
const textIn = ({ place, values }: Row, name: string): string => {
  const value = values[name];
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string" || text.trim() === "")
    throw new DataError(
      `${place}: ${name} is ${value === undefined ? "missing" : JSON.stringify(value).slice(0, 40)}, but must be a text; give one`,
    );
  return text;
};

/** Whether images of this row are judged by; undefined where it does not say. */
const isHeldOut = (row: Row): boolean | undefined => {
  if (row.values["split"] === undefined) return undefined;
  const split = textIn(row, "split").toLowerCase();
  if (split === "train") return false;
  if (heldOutNames.includes(split)) return true;
  throw new DataError(
    `${row.place}: split is ${JSON.stringify(split.slice(0, 40))}, but must be train, ${heldOutNames.join(" or ")}; correct it`,
  );
};

/**
 * Images that a file names: `.csv` (RFC 4180) whose first line names the columns, or `.jsonl`, with `path`, seen from
 * the folder of the file, `label` and, if any has it, `split`: train or test (or val, validation). Without it a part is
 * held out by paths, in proportion to the classes (see `holdOutByName`).
 *
 * @param testFraction in (0, 1), where no row has a split.
 * @throws DataError for a damaged line, an image that is named twice, and parts without one.
 */
export const readManifest = (file: string, testFraction: number): FoundImages => {
  const folder = dirname(file);
  const rows = [...(lineEndings.includes(extname(file).toLowerCase()) ? jsonRows(file) : csvRows(file))];
  if (rows.length === 0) throw new DataError(`${file} names no images; ${cure}`);
  const hasSplit = rows[0]!.values["split"] !== undefined;
  const classes = classesOf(new Set(rows.map((row) => textIn(row, "label"))));
  const numbers = new Map(classes.map((name, number) => [name, number]));
  const seen = new Map<string, string>();
  const images: ImageFile[] = [];
  const said: (boolean | undefined)[] = [];
  for (const row of rows) {
    const path = resolve(folder, textIn(row, "path"));
    const before = seen.get(path);
    if (before !== undefined)
      throw new DataError(`${row.place}: ${path} is named at ${before} already; remove one of the lines`);
    seen.set(path, row.place);
    const isTest = isHeldOut(row);
    if ((isTest !== undefined) !== hasSplit)
      throw new DataError(
        `${row.place}: it has ${hasSplit ? "no" : "a"} split, but the first image has ${hasSplit ? "one" : "none"}; give each a split, or none`,
      );
    said.push(isTest);
    images.push({ path, label: numbers.get(textIn(row, "label"))!, line: row.line });
  }
  const isTest = hasSplit ? said : heldOutOf(images, folder, testFraction);
  const [train, test] = [images.filter((_, i) => !isTest[i]), images.filter((_, i) => isTest[i])];
  if (classes.length < 2)
    throw new DataError(`${file}: all ${rows.length} images are of class ${classes[0]}; name images of two at least`);
  if (train.length === 0 || test.length === 0)
    throw new DataError(
      `${file}: of ${rows.length} images ${train.length} are to learn from and ${test.length} to judge by; name more, or give each a split, train or test`,
    );
  return { classes, train: mixed(folder, train), test: mixed(folder, test), others: [], manifest: file };
};
