import { readdirSync } from "node:fs";
import { join } from "node:path";
import { bytesPerElement, elementCount, formatShape, type Shape } from "@skein/tensor-core";
import { DataError } from "../errors.ts";
import { sampleClasses } from "../draw-samples.ts";
import { holdOut } from "../hold-out.ts";
import type { NpyHeader } from "../npy.ts";
import type { NpyTarget } from "../npy-writer.ts";
import { byteRecords, type Records } from "../records.ts";
import { openFile } from "./file-pieces.ts";
import { openNpz } from "./npz.ts";
import { type NpySource, readNpy, type SharedArray } from "./read-npy.ts";

/** Names of an input array and of its label array. */
export interface NumpyPair {
  readonly inputs: string;
  readonly labels: string;
}

/** Location of NumPy arrays, and the names of the input and label arrays. */
export interface NumpyOptions {
  /** Path of an `.npz` file. Absent: `folder` contains one `.npy` file per array. */
  readonly file?: string | undefined;
  readonly folder?: string | undefined;
  /** Names of the training arrays. Default: x_train and y_train. */
  readonly train?: NumpyPair | undefined;
  /**
   * Names of the test arrays. Default: x_test and y_test; if neither exists, a part of the training samples is held
   * out.
   */
  readonly test?: NumpyPair | undefined;
  /** Type of labels: class numbers, or values for regression. */
  readonly predicts: "classes" | "values";
  /** Number of classes. Default: largest label plus 1. */
  readonly classes?: number | undefined;
  /** Shape of one input. Default: shape of the array without its first dimension. */
  readonly shape?: Shape | undefined;
  /** Fraction of the training samples to hold out if there are no test arrays. */
  readonly testFraction: number;
}

export interface NumpyData {
  readonly train: Records;
  readonly test: Records;
  readonly predicts: "classes" | "values";
  readonly classes?: number;
}

/** Arrays in a folder or in an `.npz` file, by name. */
interface Arrays {
  readonly location: string;
  readonly names: readonly string[];
  read(name: string, targetOf: (header: NpyHeader) => NpyTarget): Promise<SharedArray>;
  close(): void;
}

const openFolder = (folder: string): Arrays => {
  let files: string[];
  try {
    files = readdirSync(folder);
  } catch (cause) {
    throw new DataError(
      `${folder} cannot be read (${(cause as NodeJS.ErrnoException).code}); give a folder of .npy files, or set file to an .npz`,
      { cause },
    );
  }
  return {
    location: folder,
    names: files.filter((name) => name.endsWith(".npy")).map((name) => name.slice(0, -".npy".length)),
    read: async (name, targetOf) => {
      const file = openFile(join(folder, `${name}.npy`), "give a folder of .npy files", "npy");
      try {
        const source: NpySource = { name: file.name, sizeBytes: file.sizeBytes, pieces: file.pieces() };
        return await readNpy(source, targetOf);
      } finally {
        file.close();
      }
    },
    close: () => undefined,
  };
};

const openArrays = async ({ file, folder }: NumpyOptions): Promise<Arrays> => {
  if (file === undefined) return openFolder(folder!);
  const npz = await openNpz(file);
  return {
    location: file,
    names: npz.names,
    read: (name, targetOf) => readNpy(npz.source(name), targetOf),
    close: () => npz.close(),
  };
};

/** Returns the dtype of inputs: u8 remains u8, other integers become i32, and all other types become f32. */
const targetOfInputs = ({ kind, bytesPerElement: bytes, descr }: NpyHeader): NpyTarget => {
  if (kind !== "integer") return "f32";
  return bytes === 1 && descr.endsWith("u1") ? "u8" : "i32";
};

const readLabels = async (
  arrays: Arrays,
  name: string,
  { predicts, classes }: NumpyOptions,
): Promise<{ readonly labels: SharedArray; readonly classes: number }> => {
  const read = await arrays.read(name, ({ kind, descr }) => {
    if (predicts === "values") return "f32";
    if (kind === "float")
      throw new DataError(
        `${arrays.location}: ${name} holds labels of type ${descr}, but classes are integers; convert it with astype("int32"), or set predicts: values`,
      );
    return "i32";
  });
  const { shape } = read;
  if (predicts === "values") return { labels: read, classes: 0 };
  if (shape.length !== 1 && !(shape.length === 2 && shape[1] === 1))
    throw new DataError(
      `${read.name} is ${formatShape(shape)}, but class labels are one number per sample, [samples]; convert one-hot rows with argmax(axis=1)`,
    );
  const elements = new Int32Array(read.bytes.buffer);
  let greatest = 0;
  for (const [index, label] of elements.entries()) {
    if (label < 0 || label >= (classes ?? Infinity))
      throw new DataError(
        `${read.name}[${index}] is ${label}, but classes are numbered from 0${classes === undefined ? "" : ` to ${classes - 1}`}; renumber them, or set classes`,
      );
    greatest = Math.max(greatest, label);
  }
  return { labels: { ...read, shape: [shape[0]!] }, classes: classes ?? greatest + 1 };
};

const fieldOf = ({ bytes, dtype }: SharedArray, shape: Shape): Records["fields"][string] => ({
  bytes,
  offsetBytes: 0,
  strideBytes: elementCount(shape) * bytesPerElement[dtype],
  dtype,
  shape,
});

const readPair = async (
  arrays: Arrays,
  names: NumpyPair,
  options: NumpyOptions,
): Promise<{ readonly records: Records; readonly classes: number }> => {
  const missing = [names.inputs, names.labels].find((name) => !arrays.names.includes(name));
  if (missing !== undefined)
    throw new DataError(
      `${arrays.location} has no array ${missing}; its arrays: ${arrays.names.length === 0 ? "none" : arrays.names.join(", ")}; set inputs and labels in train and test`,
    );
  const inputs = await arrays.read(names.inputs, targetOfInputs);
  const { labels, classes } = await readLabels(arrays, names.labels, options);
  const count = inputs.shape[0];
  if (count === undefined || labels.shape[0] !== count)
    throw new DataError(
      `${inputs.name} is ${formatShape(inputs.shape)}, ${labels.name} ${formatShape(labels.shape)}; the first dimension counts the samples and must be the same in both`,
    );
  const own = inputs.shape.slice(1);
  const shape = options.shape ?? own;
  if (elementCount(shape) !== elementCount(own))
    throw new DataError(
      `${inputs.name} has ${elementCount(own)} numbers in each sample, ${formatShape(own)}, but shape: ${formatShape(shape)} has ${elementCount(shape)}; give a shape with the same number`,
    );
  if (count === 0 || elementCount(shape) === 0)
    throw new DataError(`${inputs.name} is ${formatShape(inputs.shape)}, so there is no training data`);
  return {
    records: byteRecords(count, { inputs: fieldOf(inputs, shape), labels: fieldOf(labels, labels.shape.slice(1)) }),
    classes,
  };
};

const layoutOf = ({ fields }: Records): string =>
  Object.entries(fields)
    .map(([name, { dtype, shape }]) => `${name} ${dtype}${formatShape(shape)}`)
    .join(" and ");

const trainNames: NumpyPair = { inputs: "x_train", labels: "y_train" };
const testNames: NumpyPair = { inputs: "x_test", labels: "y_test" };

/**
 * Loads samples from NumPy arrays into shared memory: fields `inputs` (f32 for floats and bools, u8 for u8, i32 for
 * other integers) and `labels` (i32 [] for classes, f32 for values).
 *
 * Cost: one pass over the files, in chunks; an `.npz` is decompressed while it is read.
 * @throws DataError if an array is missing, truncated, not numeric or not finite, or if the arrays are inconsistent.
 */
export const loadNumpy = async (options: NumpyOptions): Promise<NumpyData> => {
  const arrays = await openArrays(options);
  try {
    const train = await readPair(arrays, options.train ?? trainNames, options);
    const isGiven = options.test !== undefined || Object.values(testNames).some((name) => arrays.names.includes(name));
    const test = isGiven ? await readPair(arrays, options.test ?? testNames, options) : undefined;
    if (test !== undefined && layoutOf(train.records) !== layoutOf(test.records))
      throw new DataError(
        `${arrays.location}: training samples are ${layoutOf(train.records)}, test samples ${layoutOf(test.records)}; dtypes and shapes must be equal`,
      );
    const parts =
      test === undefined
        ? holdOut(train.records, options.testFraction, { name: arrays.location, classes: sampleClasses(train.records) })
        : { train: train.records, test: test.records };
    return options.predicts === "values"
      ? { ...parts, predicts: "values" }
      : { ...parts, predicts: "classes", classes: Math.max(train.classes, test?.classes ?? 0) };
  } finally {
    arrays.close();
  }
};
