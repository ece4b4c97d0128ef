import { readFileSync } from "node:fs";
import { arrayRecords, type Records } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
import { defineData } from "skein-train";
import { z } from "zod";

interface Table {
  /** Features of each sample, f32 [samples, features]. */
  readonly features: readonly (readonly number[])[];
  /** Class of each sample: 0, 1, …. */
  readonly classes: readonly number[];
}

/**
 * Reads lines `feature,…,feature,class` with the same number of features in each line. Skips a first line with column
 * names.
 */
const readTable = (file: string): Table => {
  const lines = readFileSync(new URL(file, import.meta.url), "utf8").split(/\r?\n/);
  const rows = lines
    .map((line, index) => ({ location: `${file}:${index + 1}`, line: line.trim() }))
    .filter(({ line }, index) => line !== "" && !(index === 0 && /[a-z]/i.test(line)))
    .map(({ location, line }) => ({
      location,
      numbers: line.split(",").map((cell) => (cell.trim() === "" ? NaN : Number(cell))),
    }));
  const width = rows[0]?.numbers.length ?? 0;
  if (width < 2) throw new Error(`${file} has no line "feature,…,feature,class"; add some`);
  for (const { location, numbers } of rows) {
    if (numbers.length !== width)
      throw new Error(
        `${location} has ${numbers.length} numbers, but the first line has ${width}; give each line the same number`,
      );
    if (!numbers.every(Number.isFinite)) throw new Error(`${location} has a cell that is not a number; correct it`);
    if (!Number.isInteger(numbers.at(-1)) || numbers.at(-1)! < 0)
      throw new Error(
        `${location} ends with ${numbers.at(-1)}, but must end with its class, one of 0, 1, …; correct it`,
      );
  }
  return {
    features: rows.map(({ numbers }) => numbers.slice(0, -1)),
    classes: rows.map(({ numbers }) => numbers.at(-1)!),
  };
};

const samples = ({ features, classes }: Table): Records =>
  arrayRecords({
    inputs: NdArray.from(features), // f32 [samples, features]
    labels: NdArray.from(classes, [classes.length], "i32"),
  });

/**
 * Returns training samples, test samples and the type of labels that the model predicts. Called once in each process of
 * a run. Samples may be any tree of arrays, such as `arrayRecords({ query: { tokens }, document })`. For such samples,
 * set `predicts: "own"`, and define a loss in your model.
 */
export default defineData({
  // Options that a job sets under data.options: paths of CSV files, relative to the folder of this module.
  options: z.strictObject({ train: z.string(), test: z.string() }),
  create: ({ train, test }) => {
    const [training, heldOut] = [readTable(train), readTable(test)];
    const classes = 1 + [...training.classes, ...heldOut.classes].reduce((max, each) => Math.max(max, each), 0);
    return { train: samples(training), test: samples(heldOut), predicts: "classes", classes };
  },
});
