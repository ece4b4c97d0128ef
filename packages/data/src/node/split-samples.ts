import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { pathOf } from "./byte-source.ts";
import { classesOf, type FoundImages, type ImageFile, mixed, placeOf } from "./find-images.ts";
import { holdOutByName } from "./hold-out-by-name.ts";

/** An image in a file of many, of a class that is not numbered yet. */
export interface FoundSample extends Omit<ImageFile, "label" | "entry"> {
  readonly entry: NonNullable<ImageFile["entry"]>;
  readonly label: string;
}

/** What a sample is told apart by, wherever its file lies. */
const nameOf = ({ path, entry }: Pick<ImageFile, "path" | "entry">): string =>
  `${basename(pathOf(path))}/${entry!.name}`;

/** Samples that were found. */
interface Samples {
  readonly learnt: readonly FoundSample[];
  /** Those to judge by, where these have files of their own. */
  readonly held: readonly FoundSample[] | undefined;
  /** The first place that was looked at, for errors. */
  readonly where: string;
  readonly incomplete: readonly string[];
  /** All classes in their order, where the files say so. Default: those that samples have, by name. */
  readonly classes?: readonly string[] | undefined;
}

/** Samples with their classes by number, mixed. @throws DataError for one of a class that is none of those. */
export const numbered = (samples: readonly FoundSample[], classes: readonly string[]): ImageFile[] => {
  const numbers = new Map(classes.map((name, number) => [name, number]));
  const foreign = samples.find(({ label }) => !numbers.has(label));
  if (foreign !== undefined)
    throw new DataError(
      `${nameOf(foreign)} is of class ${foreign.label}, which no training sample has; name files with it in file`,
    );
  return mixed(
    "",
    samples.map(({ label, ...sample }) => ({ ...sample, label: numbers.get(label)! })),
    nameOf,
  );
};

const parted = (
  samples: readonly FoundSample[],
  fraction: number,
): readonly [train: FoundSample[], test: FoundSample[]] => {
  const isHeldOut = holdOutByName(
    samples.map((sample) => ({ label: sample.label, place: placeOf("part", "", nameOf(sample)) })),
    fraction,
  );
  return [samples.filter((_, i) => !isHeldOut[i]), samples.filter((_, i) => isHeldOut[i])];
};

/**
 * Number classes, and hold out a part of the samples where none have files of their own: by names, in
 * proportion to the classes (see `holdOutByName`).
 *
 * @param testFraction in (0, 1).
 * @throws DataError for parts without a sample, and classes that cannot be told apart.
 */
export const splitSamples = (
  { learnt, held, where, incomplete, classes: declared }: Samples,
  testFraction: number,
): FoundImages => {
  const [train, test] = held === undefined ? parted(learnt, testFraction) : [learnt, held];
  if (train.length === 0 || test.length === 0)
    throw new DataError(
      `${where}: of ${train.length + test.length} samples ${train.length} are to learn from and ${test.length} to judge by; name more files, or give testFile`,
    );
  const classes = declared ?? classesOf(new Set(learnt.map(({ label }) => label)));
  if (classes.length < 2)
    throw new DataError(`${where}: all ${train.length} samples are of class ${classes[0]}; name files of two`);
  return { classes, train: numbered(train, classes), test: numbered(test, classes), others: [], incomplete };
};
