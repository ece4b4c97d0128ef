import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { pathOf } from "./byte-source.ts";
import { classesOf, type FoundImages, type ImageFile, mixed, nameHash } from "./find-images.ts";
import { holdOutByName } from "./hold-out-by-name.ts";

/** An image in a file that contains many images, with the name of its class. */
export interface FoundSample extends Omit<ImageFile, "label" | "entry"> {
  readonly entry: NonNullable<ImageFile["entry"]>;
  readonly label: string;
}

/** Returns the name of a sample, which does not depend on the folder of its file. */
const nameOf = ({ path, entry }: Pick<ImageFile, "path" | "entry">): string =>
  `${basename(pathOf(path))}/${entry!.name}`;

/** Training and test samples that were found in tar shards or Parquet files. */
interface Samples {
  readonly training: readonly FoundSample[];
  /** Test samples. Undefined: there are no separate test files. */
  readonly heldOut: readonly FoundSample[] | undefined;
  /** First location that was searched, for errors. */
  readonly where: string;
  readonly incomplete: readonly string[];
  /**
   * All class names in the order of labels, if the files list them. Default: the classes of the training samples,
   * sorted by name.
   */
  readonly classes?: readonly string[] | undefined;
}

/**
 * Converts class names to numeric labels, and shuffles the samples so that classes are mixed.
 *
 * @throws DataError if a sample has an unknown class.
 */
export const numbered = (samples: readonly FoundSample[], classes: readonly string[]): ImageFile[] => {
  const numbers = new Map(classes.map((name, number) => [name, number]));
  const foreign = samples.find(({ label }) => !numbers.has(label));
  if (foreign !== undefined)
    throw new DataError(
      `${nameOf(foreign)} is of class ${foreign.label}, but no training sample is; add files with this class to file`,
    );
  return mixed(
    "",
    samples.map(({ label, ...sample }) => ({ ...sample, label: numbers.get(label)! })),
    nameOf,
  );
};

const splitByName = (
  samples: readonly FoundSample[],
  fraction: number,
): readonly [train: FoundSample[], test: FoundSample[]] => {
  const isHeldOut = holdOutByName(
    samples.map((sample) => ({ label: sample.label, hash: nameHash("part", "", nameOf(sample)) })),
    fraction,
  );
  return [samples.filter((_, i) => !isHeldOut[i]), samples.filter((_, i) => isHeldOut[i])];
};

/**
 * Numbers the classes. If there are no separate test files, holds out a stratified part of the samples by name (see
 * `holdOutByName`).
 *
 * @param testFraction Fraction to hold out, in (0, 1).
 * @throws DataError if the training part or the held-out part has no samples, or if there are fewer than two classes.
 */
export const splitSamples = (
  { training, heldOut, where, incomplete, classes: declared }: Samples,
  testFraction: number,
): FoundImages => {
  const [train, test] = heldOut === undefined ? splitByName(training, testFraction) : [training, heldOut];
  if (train.length === 0 || test.length === 0)
    throw new DataError(
      `${where}: of ${train.length + test.length} samples ${train.length} are for training and ${test.length} for testing; give more files, or set testFile`,
    );
  const classes = declared ?? classesOf(new Set(training.map(({ label }) => label)));
  if (classes.length < 2)
    throw new DataError(
      `${where}: all ${train.length} samples are of class ${classes[0]}; give files with at least two classes`,
    );
  return { classes, train: numbered(train, classes), test: numbered(test, classes), others: [], incomplete };
};
