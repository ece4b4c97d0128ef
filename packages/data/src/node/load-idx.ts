import { join } from "node:path";
import { type ImageRecords, imageRecords } from "../images.ts";
import { mnistFiles } from "../mnist.ts";
import { DataError } from "../errors.ts";
import { readIdx } from "./read-idx.ts";

/** A file of images and the file of their classes. */
export interface IdxPair {
  readonly images: string;
  readonly labels: string;
}

/** Which IDX files hold images and labels. */
export interface IdxOptions {
  /** Where the files lie. */
  readonly folder: string;
  /** Their names. Default: those of MNIST. */
  readonly train?: IdxPair | undefined;
  readonly test?: IdxPair | undefined;
  /** Default: one more than the greatest label. */
  readonly classes?: number | undefined;
}

const imageShape = ({ records }: ImageRecords): string => records.fields["inputs"]!.shape.join("×");

/**
 * Images of any size and number of classes from four IDX files, plain or with `.gz` at the end, in shared memory;
 * fields as of `imageRecords`.
 *
 * @throws DataError when a file is missing, truncated or altered, and where training and test images differ in size.
 */
export const loadIdx = ({
  folder,
  train = mnistFiles.train,
  test = mnistFiles.test,
  classes,
}: IdxOptions): {
  readonly train: ImageRecords["records"];
  readonly test: ImageRecords["records"];
  readonly classes: number;
} => {
  const cure = "name the folder and, in train and test, its files of images and labels";
  const pair = ({ images, labels }: IdxPair): ImageRecords =>
    imageRecords(readIdx(join(folder, images), cure), readIdx(join(folder, labels), cure), { classes });
  const [learned, heldOut] = [pair(train), pair(test)];
  if (imageShape(learned) !== imageShape(heldOut))
    throw new DataError(
      `${join(folder, train.images)} holds images of ${imageShape(learned)}, but ${join(folder, test.images)} of ${imageShape(heldOut)}; both must have one size`,
    );
  return { train: learned.records, test: heldOut.records, classes: Math.max(learned.classes, heldOut.classes) };
};
