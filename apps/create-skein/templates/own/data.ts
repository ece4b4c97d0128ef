import { readFileSync } from "node:fs";
import { arrayRecords, type Records } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
import { defineData } from "skein-train";
import { z } from "zod";

interface Table {
  /** f32, [samples, features] */
  readonly features: readonly (readonly number[])[];
  /** One of 0, 1, … for each sample. */
  readonly classes: readonly number[];
}

/** Read lines `feature,…,feature,class`, as many features in each; a first line with names is passed over. */
const readTable = (file: string): Table => {
  const lines = readFileSync(new URL(file, import.meta.url), "utf8").split(/\r?\n/);
  const rows = lines
    .map((line, index) => ({ place: `${file}:${index + 1}`, line: line.trim() }))
    .filter(({ line }, index) => line !== "" && !(index === 0 && /[a-z]/i.test(line)))
    .map(({ place, line }) => ({
      place,
      numbers: line.split(",").map((cell) => (cell.trim() === "" ? NaN : Number(cell))),
    }));
  const width = rows[0]?.numbers.length ?? 0;
  if (width < 2) throw new Error(`${file} has no line "feature,…,feature,class"; give it some`);
  for (const { place, numbers } of rows) {
    if (numbers.length !== width)
      throw new Error(
        `${place} has ${numbers.length} numbers, but the first line has ${width}; give each line as many`,
      );
    if (!numbers.every(Number.isFinite)) throw new Error(`${place} has a cell that is no number; correct it`);
    if (!Number.isInteger(numbers.at(-1)) || numbers.at(-1)! < 0)
      throw new Error(`${place} ends with ${numbers.at(-1)}, but must end with its class, one of 0, 1, …; correct it`);
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
 * Samples to learn from, samples to judge by, and what is predicted. Called once in each process of a run. Samples may
 * be any tree of arrays, such as `arrayRecords({ query: { tokens }, document })`: then say `predicts: "own"`, and give
 * the model a loss of your own.
 */
export default defineData({
  // What a job sets under data.options: CSV files, seen from the folder of this module.
  options: z.strictObject({ train: z.string(), test: z.string() }),
  create: ({ train, test }) => {
    const [toLearn, toJudge] = [readTable(train), readTable(test)];
    const classes = 1 + [...toLearn.classes, ...toJudge.classes].reduce((most, each) => Math.max(most, each), 0);
    return { train: samples(toLearn), test: samples(toJudge), predicts: "classes", classes };
  },
});
